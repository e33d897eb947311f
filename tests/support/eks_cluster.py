"""A valid EKS cluster to start from: a test overrides the one thing it is about."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from holdfast.components.cluster.eks.addon_versions import AddonVersions, addon_versions
from holdfast.components.cluster.eks.component import EksCluster, EksClusterArgs
from holdfast.components.cluster.eks.system_nodes import SystemNodesArgs
from tests.support.fakes.pulumi_engine import Recording, record

if TYPE_CHECKING:
    from collections.abc import Callable

KUBERNETES = "1.36"
ADMIN = "arn:aws:iam::123456789012:role/platform"


def versions() -> AddonVersions:
    """The add-ons of the cluster's Kubernetes version."""
    found = addon_versions(KUBERNETES)
    assert found is not None, f"there are add-ons for {KUBERNETES}"
    return found


def cluster_args() -> EksClusterArgs:
    """A cluster that can be deleted, in two subnets of the user's own."""
    return EksClusterArgs(
        cluster_name="holdfast-dev",
        version=KUBERNETES,
        account="123456789012",
        region="us-east-1",
        partition="aws",
        private_subnet_ids=["subnet-1", "subnet-2"],
        system_nodes=SystemNodesArgs(instance_types=["m7i.large", "m6i.large"]),
        addons=versions(),
        protected=False,
        public_access_cidrs=["203.0.113.0/24"],
        admins=[ADMIN],
    )


def recorded_cluster(
    change: Callable[[EksClusterArgs], EksClusterArgs] | None = None, *, preview: bool = False
) -> Recording:
    """What a cluster registers; `change` makes other arguments of the valid ones."""
    if change is None:
        return _recorded_valid(preview=preview)
    args = change(cluster_args())
    return record(lambda: EksCluster("cluster", args), preview=preview)


@cache
def _recorded_valid(*, preview: bool) -> Recording:
    """What most tests look at, made once."""
    return record(lambda: EksCluster("cluster", cluster_args()), preview=preview)
