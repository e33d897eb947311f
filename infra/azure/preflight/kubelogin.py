"""The command by which Kubernetes clients get into an AKS cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from holdfast.components.cluster.aks.kubeconfig import KUBELOGIN
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable


def kubelogin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """Why nobody here would get into the cluster; None where kubelogin is there.

    `find` tells the path of a command. A cluster without local accounts lets in nobody without a token of Entra ID's: it
    would be made, ten minutes later nothing could be put into it, and nothing of it could be read or destroyed.
    """
    if find(KUBELOGIN) is not None:
        return None
    return Problem(
        field=KUBELOGIN,
        value="no such command on the PATH of whoever runs pulumi",
        allowed="Azure's plugin, which gets the tokens that clients of the cluster show",
        fix="Install it with `az aks install-cli`, or from https://azure.github.io/kubelogin/install.html.",
    )
