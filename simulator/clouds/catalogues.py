"""Finds the catalogue of a package, importing no other cloud's."""

import importlib
from typing import cast

from holdfast.simulator.clouds.catalogue import Catalogue

# A module with a CATALOGUE for each package a stand-in knows more about than its SDK says.
_MODULES = {
    "aws": "holdfast.simulator.clouds.aws.catalogue",
    "gcp": "holdfast.simulator.clouds.gcp.catalogue",
    "azure-native": "holdfast.simulator.clouds.azure.catalogue",
}


# The programs kubeconfigs name to get a token, and the package whose clusters they know.
_TOKEN_COMMANDS = {"aws": "aws", "gke-gcloud-auth-plugin": "gcp", "kubelogin": "azure-native"}


def package_of_command(command: str) -> str | None:
    """Return the package to whose clusters a kubeconfig leads that asks this program for a token."""
    return _TOKEN_COMMANDS.get(command)


def catalogue_of(package: str) -> Catalogue:
    """Return what is known of a package's cloud; the plain default for one without a catalogue of its own."""
    if package not in _MODULES:
        return Catalogue()
    return cast("Catalogue", importlib.import_module(_MODULES[package]).CATALOGUE)
