"""Who the nodes of a cluster are, and what they may do."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, ResourceOptions
from pulumi_gcp.projects import IAMMember
from pulumi_gcp.serviceaccount import Account

from holdfast.components.ordering import tied_to

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi import Output

#: What Google takes as a service account's id.
_LONGEST_ID: Final = 30

#: To write logs and metrics, which is the least that GKE asks of a node; and to pull the images of the project.
#: Pods get nothing of it: what they ask for a token is GKE's metadata server, which knows them by their own account.
_ROLES: Final[Mapping[str, str]] = {
    "logs-and-metrics": "roles/container.defaultNodeServiceAccount",
    "images": "roles/artifactregistry.reader",
}


def account_id(cluster_name: str) -> str:
    """The id of the nodes' service account: the cluster's name with `-nodes`, cut and told apart where it is long."""
    whole = f"{cluster_name}-nodes"
    if len(whole) <= _LONGEST_ID:
        return whole
    mark = hashlib.sha256(cluster_name.encode()).hexdigest()[:6]
    return f"{cluster_name[: _LONGEST_ID - len(mark) - 1].rstrip('-')}-{mark}"


@dataclass(frozen=True, kw_only=True)
class NodeIdentityArgs:
    """The cluster, and the project it is in."""

    cluster_name: str
    project: str


class NodeIdentity(ComponentResource):
    """The service account of all nodes of a cluster: never Compute Engine's default one, which may edit the project.

    Creates the account and its two roles. `email` is tied to the roles: nodes that have it find it able to write logs
    and to pull images, to their end.
    """

    email: Output[str]

    def __init__(self, name: str, args: NodeIdentityArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:NodeIdentity", name, None, opts)
        account = Account(
            f"{name}-account",
            account_id=account_id(args.cluster_name),
            project=args.project,
            display_name=f"Nodes of the GKE cluster {args.cluster_name}",
            opts=ResourceOptions(parent=self),
        )
        roles = [
            IAMMember(
                f"{name}-{what}",
                project=args.project,
                role=role,
                member=account.email.apply(lambda email: f"serviceAccount:{email}"),
                opts=ResourceOptions(parent=self),
            )
            for what, role in _ROLES.items()
        ]
        self.email = tied_to(account.email, roles)
        self.register_outputs({"email": self.email})
