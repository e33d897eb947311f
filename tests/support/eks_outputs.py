"""What EKS and EC2 add to a resource beyond name and ARN, for the mocks to answer with."""

from __future__ import annotations

from typing import cast

GROUP = "sg-0123456789abcdef0"
PLACEMENT = "pg-0123456789abcdef0"
ENDPOINT = "https://0123456789ABCDEF.gr7.us-east-1.eks.amazonaws.com"
AUTHORITY = "Q0E="
ISSUER = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"


def computed_outputs(kind: str, inputs: dict[str, object]) -> dict[str, object]:
    """The outputs that a created resource of a type has and its inputs do not."""
    if kind == "aws:eks/cluster:Cluster":
        network = cast("dict[str, object]", inputs.get("vpcConfig", {}))
        return {
            "endpoint": ENDPOINT,
            "certificateAuthority": {"data": AUTHORITY},
            "identities": [{"oidcs": [{"issuer": ISSUER}]}],
            "vpcConfig": {**network, "clusterSecurityGroupId": GROUP},
        }
    if kind == "aws:ec2/launchTemplate:LaunchTemplate":
        return {"latestVersion": 1}
    if kind == "aws:ec2/placementGroup:PlacementGroup":
        return {"placementGroupId": PLACEMENT}
    return {}
