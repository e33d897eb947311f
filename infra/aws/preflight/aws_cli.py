"""The command by which Kubernetes clients get into an EKS cluster."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from holdfast.components.cluster.eks.kubeconfig import AWS_CLI
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable


def cli_problem(find: Callable[[str], str | None] = shutil.which) -> Problem | None:
    """Why nobody here would get into the cluster; None where the AWS CLI is there.

    `find` tells the path of a command. Without it the cluster would be made, a quarter of an hour later nothing could be
    put into it, and nothing in it could be read or destroyed.
    """
    if find(AWS_CLI) is not None:
        return None
    return Problem(
        field=AWS_CLI,
        value="no such command on the PATH of whoever runs pulumi",
        allowed="the AWS CLI, version 2, which gets the tokens that clients of the cluster show",
        fix="Install it: https://docs.aws.amazon.com/cli/latest/userguide/getting-started-install.html",
    )
