"""The sections on other clusters: those to which jobs of this one may move, and those whose jobs may run here."""

import base64
import binascii
import ssl
from collections.abc import Iterator, Mapping
from typing import Annotated, ClassVar, Final, TypeAlias

from pydantic import AfterValidator, Field

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import Allowed, DnsLabel, Section, Text, error_with_fix
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.namespace import NamespaceSection

CLUSTERS: Final = f"{PLATFORM}.clusters"
ACCEPTS_FROM: Final = f"{PLATFORM}.acceptsFrom"

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
    Text(
        "the full name of a stack, ORGANIZATION/PROJECT/STACK",
        "my-organization/holdfast/aws-us-east-2",
        f"{_PART}/{_PART}/{_PART}",
        "Write ORGANIZATION/PROJECT/STACK, as `pulumi stack ls --all` shows it.",
    ),
]
_ADDRESS: Final = "an address that starts with https://"
_SERVER_FIX: Final = "Write the server of the cluster's kubeconfig."
_ISSUER: Final = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"


class OtherClusterSection(Section):
    """A cluster to which jobs may move: another stack, or the API server of any cluster."""

    fixes: ClassVar[Mapping[str, str]] = {
        "token": "Leave it out: the cluster trusts the issuer of this cluster's tokens, and no credential is stored.",
        "kubeconfig": "Write server and certificateAuthority, as the kubeconfig has them.",
    }

    name: DnsLabel = Field(description="a name, which tiers refer to", examples=["us-east-2"])
    stack: StackName | None = Field(
        default=None,
        description="the full name of the cluster's stack, such as `my-organization/holdfast/aws-us-east-2`; each stack once",
    )
    server: Annotated[str, Text(_ADDRESS, "https://203.0.113.10:6443", _HTTPS, _SERVER_FIX)] | None = Field(
        default=None, description="instead of `stack`, the address of the API server, as in a kubeconfig"
    )
    certificate_authority: (
        Annotated[str, AfterValidator(_authority), Allowed("certificates in base64", "LS0tLS1CRUdJTi…")]
        | None
    ) = Field(
        default=None,
        description="beside `server`: the certificates that sign its certificate, in base64, as in a kubeconfig; by default the "
        "authorities of the controller's image",
    )


class AcceptedClusterSection(Section):
    """A cluster whose jobs may run in this one."""

    fixes: ClassVar[Mapping[str, str]] = {
        "stack": "Write issuer: `pulumi stack output issuer` of that stack prints it."
    }

    name: DnsLabel = Field(
        description="a name for the other cluster, which names the user that its controller is here",
        examples=["us-east-1"],
    )
    issuer: Annotated[
        str, Text(_ADDRESS, _ISSUER, f"{_HTTPS}/?", "Write the output issuer of the cluster's stack.")
    ] = Field(description="the issuer of its tokens: the output `issuer` of its stack")
    namespaces: tuple[str, ...] = Field(
        min_length=1,
        description="the training namespaces of this stack in which its jobs may run; each accepts one cluster",
        examples=["[vision]"],
    )
    checkpoints: StackName | None = Field(
        default=None,
        description="the full name of the cluster's stack, on the same cloud: all jobs in `namespaces` keep their checkpoints in the "
        "bucket of that stack; on AWS in the same account, on Azure in the same tenant, through a private endpoint ([what it "
        "needs](another-cluster.md#checkpoints-and-what-they-cost))",
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
