"""The sections on other clusters: those to which jobs of this one may move, and those whose jobs may run here."""

import base64
import binascii
import ssl
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import AfterValidator, Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import NAME_ALLOWED, DnsLabel, error_with_fix, matching
from pulumi_holdfast.config.loader import PLATFORM, Parts
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.ladder.errors import Problem

CLUSTERS: Final = f"{PLATFORM}.clusters"

_PART: Final = r"[A-Za-z0-9_.-]+"
_LABEL: Final = r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
_HTTPS: Final = rf"https://{_LABEL}(\.{_LABEL})*(:[0-9]{{1,5}})?(/[A-Za-z0-9._~-]+)*"


def _authority(text: str) -> str:
    fix = "Write certificate-authority-data of the cluster's kubeconfig."
    try:
        # Other content than certificates, such as a key, is refused here, too.
        ssl.create_default_context(cadata=base64.b64decode(text, validate=True).decode("ascii"))
    except (binascii.Error, UnicodeDecodeError, ssl.SSLError) as error:
        raise error_with_fix(fix) from error
    return text


StackName: TypeAlias = Annotated[
    str,
    matching(
        f"{_PART}/{_PART}/{_PART}", "Write ORGANIZATION/PROJECT/STACK, as `pulumi stack ls --all` shows it."
    ),
]


class OtherClusterSection(Section):
    """A cluster to which jobs may move: another stack, or the API server of any cluster."""

    fixes: ClassVar[Mapping[str, str]] = {
        "token": "Leave it out: the cluster trusts the issuer of this cluster's tokens, and no credential is stored.",
        "kubeconfig": "Write server and certificateAuthority, as the kubeconfig has them.",
        "region": "Leave it out: the stack, or the server, says where the cluster is.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["us-east-2"])
    stack: StackName | None = Field(
        default=None,
        description="the full name of the cluster's stack, ORGANIZATION/PROJECT/STACK",
        examples=["my-organization/holdfast/aws-us-east-2"],
    )
    server: Annotated[str, matching(_HTTPS, "Write the server of the cluster's kubeconfig.")] | None = Field(
        default=None,
        description="the address of the cluster's API server, which starts with https://",
        examples=["https://203.0.113.10:6443"],
    )
    certificate_authority: Annotated[str, AfterValidator(_authority)] | None = Field(
        default=None,
        description="the certificates that sign the API server's certificate, in base64",
        examples=["LS0tLS1CRUdJTi…"],
    )


class AcceptedClusterSection(Section):
    """A cluster whose jobs may run in this one."""

    fixes: ClassVar[Mapping[str, str]] = {
        "stack": "Write issuer: `pulumi stack output issuer` of that stack prints it.",
        "namespace": "Write namespaces, a list.",
    }

    name: DnsLabel = Field(description=NAME_ALLOWED, examples=["us-east-1"])
    issuer: Annotated[str, matching(f"{_HTTPS}/?", "Write the output issuer of the cluster's stack.")] = (
        Field(
            description="the issuer of the cluster's tokens, an address that starts with https://",
            examples=["https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF0123456789ABCDEF"],
        )
    )
    namespaces: tuple[str, ...] = Field(
        min_length=1, description="a list of training namespaces of this stack", examples=["[vision]"]
    )
    checkpoints: StackName | None = Field(
        default=None,
        description="the full name of the cluster's stack: jobs in these namespaces keep their checkpoints in its bucket",
        examples=["my-organization/holdfast/aws-us-east-1"],
    )


AcceptsFromField: TypeAlias = Annotated[
    tuple[AcceptedClusterSection, ...],
    Field(
        description="a list of clusters, each with its issuer and its namespaces",
        examples=[
            "[{name: us-east-1, issuer: https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF, namespaces: [vision]}]"
        ],
    ),
]

ClustersField: TypeAlias = Annotated[
    tuple[OtherClusterSection, ...],
    Field(
        description="a list of other clusters, each with its stack, or with its server",
        examples=["[{name: us-east-2, stack: my-organization/holdfast/aws-us-east-2}]"],
    ),
]


def other_cluster_problems(clusters: Parts[OtherClusterSection], at: str) -> Iterator[Problem]:
    """The clusters that have both a stack and a server, or neither, or the stack of another one."""
    stacks: dict[str, int] = {}
    for index, cluster in clusters.items.items():
        if cluster.stack is not None and stacks.setdefault(cluster.stack, index) != index:
            yield Problem(
                field=f"{at}[{index}].stack",
                value=f"{format_value(cluster.stack)} a second time",
                allowed="each stack once",
                fix=f"Write the name of cluster [{stacks[cluster.stack]}] on the tiers, and remove this cluster.",
            )
        if cluster.stack is None and cluster.server is None:
            yield Problem(
                field=f"{at}[{index}]",
                value="neither stack nor server",
                allowed="one of the two",
                fix="Write stack for a stack of Holdfast; or server, with certificateAuthority.",
            )
        elif cluster.stack is not None and (cluster.server or cluster.certificate_authority):
            yield Problem(
                field=f"{at}[{index}].{'server' if cluster.server else 'certificateAuthority'}",
                value="a value beside stack",
                allowed="nothing: the outputs of the stack have the address and the certificates",
                fix="Leave it out.",
            )


def unlisted_cluster_problems(
    namespace: NamespaceSection, clusters: Parts[OtherClusterSection], at: str
) -> Iterator[Problem]:
    """The tiers of a ladder, at a path, in clusters that are not in the list."""
    listed = tuple(clusters.names.values())
    for index, tier in enumerate(namespace.ladder):
        if tier.cluster is None or tier.cluster in listed or clusters.may_hold(tier.cluster):
            continue
        close = get_close_matches(tier.cluster, listed, n=1)
        yield Problem(
            field=f"{at}[{index}].cluster",
            value=format_value(tier.cluster),
            allowed=f"the clusters in {CLUSTERS}: {', '.join(listed) or 'it has none'}",
            fix=f'Write "{close[0]}".'
            if close
            else f"Add `{{name: {tier.cluster}, stack: ORGANIZATION/PROJECT/STACK}}` to {CLUSTERS}, or remove cluster.",
        )


def unused_cluster_warnings(
    clusters: tuple[OtherClusterSection, ...], namespaces: tuple[NamespaceSection, ...]
) -> Iterator[str]:
    """The clusters that no tier names: while copies of jobs are there, the controller must reach them."""
    used = {tier.cluster for namespace in namespaces for tier in namespace.ladder}
    for cluster in clusters:
        if cluster.name not in used:
            yield (
                f"cluster {format_value(cluster.name)}: no tier names it, so its jobs return. Remove it from {CLUSTERS} "
                "once no job is in the phase Away."
            )
