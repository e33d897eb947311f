"""The add-on builds that are known to have been installed on a Kubernetes version.

EKS publishes more than these, and adds to them every few weeks. A build that is missing here is refused as AWS refuses
one that does not exist: look it up (`aws eks describe-addon-versions --kubernetes-version 1.36`) and add it.
"""

from collections.abc import Mapping
from typing import Final

#: Kubernetes version → add-on → builds.
BUILDS: Final[Mapping[str, Mapping[str, frozenset[str]]]] = {
    "1.36": {
        "vpc-cni": frozenset({"v1.22.3-eksbuild.1", "v1.22.4-eksbuild.3", "v1.23.1-eksbuild.1"}),
        "kube-proxy": frozenset(f"v1.36.0-eksbuild.{build}" for build in (9, 13, 14, 17, 21, 25)),
        "eks-pod-identity-agent": frozenset({"v1.3.10-eksbuild.3"}),
        "coredns": frozenset(f"v1.14.3-eksbuild.{build}" for build in (3, 14, 16, 23)),
        "aws-ebs-csi-driver": frozenset({"v1.63.1-eksbuild.1", "v1.64.0-eksbuild.1", "v1.66.0-eksbuild.1"}),
    },
}
