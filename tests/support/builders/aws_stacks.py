"""AWS stacks as a whole, composed under mocks in an account that answers: those of `stacks/`, and other ways to write one."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.aws.config.sections import AwsPlatform
from pulumi_holdfast.aws.control_plane.access import Caller
from pulumi_holdfast.aws.training_cluster import TrainingCluster, TrainingClusterArgs
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.stack_program import export, load_platform
from tests.support.builders.configurations import Document, aws_platform, entry, list_of
from tests.support.fakes.aws_account import ROLES, answers
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Answer, Recording, record, recorded_once

CHARTS: Final = "oci://mirror.example.com/charts"
IMAGES: Final = "mirror.example.com/images"
VPC: Final = "vpc-0123456789abcdef0"
#: The API server of a cluster to which jobs move, and the issuer of one whose jobs are accepted.
ON_PREM: Final = "https://on-prem.example.com:6443"
ISSUER: Final = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"
SUBNETS: Final = ("subnet-0123456789abcdef0", "subnet-0123456789abcdef1")

#: A registry that ECR reads without credentials, and one whose credentials it needs.
CACHES: Final[Sequence[JsonValue]] = (
    {"prefix": "quay", "upstream": "quay.io"},
    {
        "prefix": "team/docker-hub",
        "upstream": "registry-1.docker.io",
        "credentialArn": "arn:aws:secretsmanager:us-west-2:123456789012:secret:ecr-pullthroughcache/docker-hub-AbCdEf",
    },
)

_STACKS: Final = Path(__file__).parents[3] / "stacks"


def _tracked(name: str) -> Callable[[], AwsPlatform]:
    return lambda: cast("AwsPlatform", load_platform(_STACKS / f"Pulumi.{name}.yaml"))


def _isolated(document: Document) -> None:
    document.update(
        network={"cidr": "10.40.0.0/16", "zones": ["us-west-2a", "us-west-2b"], "isolated": True},
        mirror={"charts": CHARTS, "images": IMAGES},
    )
    entry(document, "pools", 2).update(efa=True)


def _brought(document: Document) -> None:
    document.update(
        network={"vpcId": VPC, "privateSubnetIds": [*SUBNETS]},
        pullThroughCache=CACHES,
        clusters=[{"name": "on-prem", "server": ON_PREM}],
        acceptsFrom=[{"name": "us-east-1", "issuer": ISSUER, "namespaces": ["vision"]}],
    )
    list_of(entry(document, "namespaces", 0), "ladder").insert(
        1, {"cluster": "on-prem", "pool": "a100", "procurementTimeout": "20m"}
    )
    entry(document, "pools", 2).update(efa=True, compactPlacement=True, zones=["us-west-2a"])


#: Name → platform. The first three are the repository's own.
PLATFORMS: Final[Mapping[str, Callable[[], AwsPlatform]]] = {
    "aws-dev": _tracked("aws-dev"),
    "aws-data": _tracked("aws-data"),
    "aws-prod": _tracked("aws-prod"),
    "isolated": lambda: aws_platform(_isolated),
    "brought": lambda: aws_platform(_brought),
}


@cache
def stack(name: str, *, preview: bool = False) -> Recording:
    """One of the stacks, composed."""
    return composed(PLATFORMS[name](), name=name, preview=preview)


def composed(
    platform: AwsPlatform,
    *,
    name: str = "aws-test",
    preview: bool = False,
    caller: Caller | None = None,
    answer: Answer = answers,
    other: OtherStack | None = None,
) -> Recording:
    """A stack of this name, composed; `answer` is what the account says, `other` the stack that it refers to."""
    return recorded_once(
        (repr(platform), name, preview, caller, answer, other),
        lambda: record(lambda: make(platform, name, caller), preview=preview, answer=answer, other=other),
    )


def make(platform: AwsPlatform, name: str, caller: Caller | None = None) -> None:
    """Make the cluster of a stack of this name, as the program does."""
    args = TrainingClusterArgs(platform=platform, environment=name, caller=caller or Caller())
    export(TrainingCluster("main", args).outputs)


def without_spot_role(token: str, arguments: Json) -> Json:
    """What an account answers that has never used spot."""
    return {"arns": [], "names": []} if token == ROLES else answers(token, arguments)
