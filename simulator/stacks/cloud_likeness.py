"""What makes the API server here like those of a cloud: plugins that are on, and objects that are in every cluster."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final

import yaml

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping

if TYPE_CHECKING:
    from holdfast.scheduling.json import JsonValue

_FIELD_MANAGER: Final = "holdfast-cloud"


@dataclass(frozen=True, kw_only=True)
class CloudLikeness:
    """What an API server has beside Kubernetes' own: admission plugins, and objects, in a file beside this module."""

    admission_plugins: tuple[str, ...] = ()
    objects: str = ""

    def put_into(self, kubeconfig: Path) -> None:
        """Have the objects in a cluster. Harmless when they are."""
        if not self.objects:
            return
        text = files("holdfast.simulator.stacks").joinpath(self.objects).read_text(encoding="utf-8")
        documents: list[JsonValue] = list(yaml.safe_load_all(text))
        client = KubeClient.from_kubeconfig(kubeconfig)
        try:
            for document in documents:
                client.apply(mapping(document), field_manager=_FIELD_MANAGER, force=True)
        finally:
            client.close()


# GKE's API servers let pods that ask for GPUs tolerate the taint it puts on machines with GPUs; which other plugins they
# have on is not told.
_CLOUDS: Final[Mapping[str, CloudLikeness]] = {
    "gcp": CloudLikeness(admission_plugins=("ExtendedResourceToleration",), objects="gke_objects.yaml")
}


def api_server_profile(cloud: str) -> CloudLikeness:
    """Return what the API servers of a cloud have of their own; nothing for one of which nothing is known."""
    return _CLOUDS.get(cloud, CloudLikeness())
