"""The command by which Kubernetes clients get into a GKE cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from holdfast.components.cluster.gke.kubeconfig import AUTH_PLUGIN
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable


def plugin_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """Why nobody here would get into the cluster; None where the plugin is there.

    `find` tells the path of a command. Without the plugin the cluster would be made, half an hour later nothing could be
    put into it, and nothing of it could be read or destroyed.
    """
    if find(AUTH_PLUGIN) is not None:
        return None
    return Problem(
        field=AUTH_PLUGIN,
        value="no such command on the PATH of whoever runs pulumi",
        allowed="Google's plugin, which gets the tokens that clients of the cluster show",
        fix=f"Install it with `gcloud components install {AUTH_PLUGIN}`, or as the package "
        f"google-cloud-cli-{AUTH_PLUGIN} of your distribution.",
    )
