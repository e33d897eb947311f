"""Types of single AWS values (accounts, principals, zones, ids), and the rules of regions and their zones."""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, cast

from pydantic import AfterValidator, BeforeValidator, PlainValidator

from pulumi_holdfast.config import errors
from pulumi_holdfast.config.cidrs import FEWEST_ZONES, MOST_ZONES
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import error_with_fix, matching
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.machines import regions, zones_of

ACCOUNT_ALLOWED: Final = "the 12 digits of an AWS account, in quotes"
PRINCIPAL_ALLOWED: Final = "the ARN of an IAM role or user, such as arn:aws:iam::123456789012:role/platform"
KEY_ALLOWED: Final = "the ARN of a symmetric KMS key in the stack's region"
BOUNDARY_ALLOWED: Final = "the ARN of an IAM policy, such as arn:aws:iam::123456789012:policy/boundary"
PATH_ALLOWED: Final = "a path that starts and ends with a slash, such as /holdfast/"
CLUSTER_NAME_ALLOWED: Final = "the name of an EKS cluster in the stack's region"
ZONES_ALLOWED: Final = f"a number of zones, {FEWEST_ZONES} to {MOST_ZONES}, or a list of as many zones"

#: The registries that ECR caches: by host, those that it reads without credentials, and those whose credentials it needs.
OPEN_UPSTREAMS: Final = ("public.ecr.aws", "quay.io", "registry.k8s.io")
CLOSED_UPSTREAMS: Final = ("ghcr.io", "registry-1.docker.io", "registry.gitlab.com")
_AZURE_UPSTREAM: Final = "NAME.azurecr.io"
UPSTREAM_ALLOWED: Final = f"the host of a registry that ECR caches: {', '.join((*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS))} or {_AZURE_UPSTREAM}"
PREFIX_ALLOWED: Final = (
    "2 to 30 lower-case letters, digits, dots, underscores, hyphens and slashes between them"
)
CREDENTIAL_ALLOWED: Final = (
    "the ARN of a secret of this account and region whose name begins with ecr-pullthroughcache/"
)

RESERVATION_ALLOWED: Final = (
    "the id of a capacity reservation or of a Capacity Block, such as cr-0123456789abcdef0"
)

_ACCOUNT_DIGITS: Final = 12
_SESSION: Final = re.compile(r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([^/]+)/.+", re.ASCII)
_PRINCIPAL: Final = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:(role|user)/([\x21-\x7e]+/)*[\w+=,.@-]{1,64}", re.ASCII
)
_ZONE: Final = r"[a-z]{2,3}(-[a-z]+)+-[0-9]+[a-z]"
_ZONE_FIX: Final = "Write a region and the letter of one of its zones, such as us-east-1a."


def _account(value: object) -> object:
    # YAML parses an unquoted account as a number, and one with a leading 0 as a different number.
    if isinstance(value, int) and not isinstance(value, bool) and len(str(value)) == _ACCOUNT_DIGITS:
        raise error_with_fix(f'Put it in quotes: "{value}".')
    if not isinstance(value, str) or not re.fullmatch(r"[0-9]{12}", value, re.ASCII):
        raise error_with_fix("Write the output of `aws sts get-caller-identity --query Account`, in quotes.")
    return value


def _principal(text: str) -> str:
    session = _SESSION.fullmatch(text)
    if session:
        partition, account, role = session.groups()
        raise error_with_fix(
            f"Write the role behind the session: arn:{partition}:iam::{account}:role/{role}."
        )
    if text.endswith(":root"):
        raise error_with_fix("Write a role or a user: an account as a whole cannot get access to a cluster.")
    if not _PRINCIPAL.fullmatch(text):
        raise error_with_fix("Write, for example, arn:aws:iam::123456789012:role/platform.")
    return text


def _zones(value: object) -> int | tuple[str, ...]:
    if isinstance(value, int) and not isinstance(value, bool) and FEWEST_ZONES <= value <= MOST_ZONES:
        return value
    if isinstance(value, int) or not isinstance(value, list | tuple):
        raise error_with_fix("Write, for example, `zones: 3` or `zones: [us-east-1a, us-east-1b]`.")
    named = cast("Sequence[object]", value)
    for zone in named:
        if not isinstance(zone, str):
            raise error_with_fix("Write zones as text, such as us-east-1a.")
        if not re.fullmatch(_ZONE, zone, re.ASCII):
            raise error_with_fix(_ZONE_FIX)
    zones = tuple(str(zone) for zone in named)
    if len(set(zones)) != len(zones) or not FEWEST_ZONES <= len(zones) <= MOST_ZONES:
        raise error_with_fix(f"Write {FEWEST_ZONES} to {MOST_ZONES} zones, each once: EKS needs two or more.")
    return zones


_PATH: Final = re.compile(r"/([\x21-\x2e\x30-\x7e]+/)*", re.ASCII)
_LONGEST_PATH: Final = 512


def _path(text: str) -> str:
    if len(text) > _LONGEST_PATH or not _PATH.fullmatch(text):
        raise error_with_fix(
            f'Write "/{text.strip("/")}/".' if text.strip("/") else 'Write, for example, "/holdfast/".'
        )
    return text


def _id(prefix: str, command: str) -> AfterValidator:
    return matching(
        rf"{prefix}-([0-9a-f]{{8}}|[0-9a-f]{{17}})", f"Write one that `aws ec2 {command}` prints."
    )


_HOSTS_OF_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "hub.docker.com")
_AZURE_HOST: Final = re.compile(r"[a-z0-9]{5,50}\.azurecr\.io", re.ASCII)


def _upstream(text: str) -> str:
    if text in (*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS) or _AZURE_HOST.fullmatch(text):
        return text
    host = text.partition("://")[2] or text
    host = "registry-1.docker.io" if host in _HOSTS_OF_DOCKER_HUB else host.rstrip("/")
    if host in (*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS):
        raise error_with_fix(f'Write "{host}".')
    raise error_with_fix("Write one of them, or copy the images to a repository of your own.")


_PREFIX: Final = re.compile(r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*", re.ASCII)
_PREFIX_LENGTHS: Final = range(2, 31)


def _repository_prefix(text: str) -> str:
    if len(text) not in _PREFIX_LENGTHS or not _PREFIX.fullmatch(text):
        raise error_with_fix("Write, for example, docker-hub: cached images are in docker-hub/….")
    return text


AccountId = Annotated[str, BeforeValidator(_account)]
PrincipalArn = Annotated[str, AfterValidator(_principal)]
KeyArn = Annotated[
    str,
    matching(
        r"arn:(aws|aws-cn|aws-us-gov):kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})",
        "Write the output of `aws kms describe-key --key-id KEY --query KeyMetadata.Arn`.",
    ),
]
PolicyArn = Annotated[
    str,
    matching(
        r"arn:(aws|aws-cn|aws-us-gov):iam::([0-9]{12}|aws):policy/([\x21-\x7e]+/)*[\w+=,.@-]{1,128}",
        "Write, for example, arn:aws:iam::123456789012:policy/boundary.",
    ),
]
Upstream = Annotated[str, AfterValidator(_upstream)]
RepositoryPrefix = Annotated[str, AfterValidator(_repository_prefix)]
CredentialArn = Annotated[
    str,
    matching(
        r"arn:aws:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:ecr-pullthroughcache/[\w/+=.@-]{1,512}",
        "Write the ARN that `aws secretsmanager create-secret --name ecr-pullthroughcache/NAME` prints.",
    ),
]
IamPath = Annotated[str, AfterValidator(_path)]
Zone = Annotated[str, matching(_ZONE, _ZONE_FIX)]
Zones = Annotated[int | tuple[str, ...], PlainValidator(_zones, json_schema_input_type=int | tuple[str, ...])]
EksClusterName = Annotated[
    str, matching(r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}", "Write one that `aws eks list-clusters` prints.")
]
VpcId = Annotated[str, _id("vpc", "describe-vpcs --query Vpcs[].VpcId")]
SubnetId = Annotated[str, _id("subnet", "describe-subnets --query Subnets[].SubnetId")]
ReservationId = Annotated[
    str, _id("cr", "describe-capacity-reservations --query CapacityReservations[].CapacityReservationId")
]


#: The key of a stack's region: the AWS provider's own, so that there is no second value.
REGION: Final = "aws:region"


def region_problem(region: str | None) -> Problem | None:
    """The problem of a stack's region; None for a known region."""
    known = regions("aws")
    return errors.region_problem(
        REGION,
        region,
        known,
        what="region",
        allowed=", ".join(sorted(known)),
        example="us-east-1",
        meant=region or "",
    )


def partition_of(region: str) -> str:
    """The partition in the ARNs of a region."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone may be an availability zone of a region; Local Zones and Wavelength Zones are not.

    Accounts see different zones of a region: every letter up to the last known one is valid.
    """
    letter = zone.removeprefix(region)
    last = max((known[-1] for known in zones_of(region)), default="z")
    return re.fullmatch(rf"{re.escape(region)}[a-z]", zone, re.ASCII) is not None and letter <= last


#: The key of the role that the AWS provider assumes.
ASSUME_ROLES: Final = "aws:assumeRoles"

#: The settings of an assumed role with which the AWS CLI can get a cluster's token too.
_ROLE_SETTINGS: Final = frozenset({"roleArn", "sessionName", "duration"})


def assumed_role(text: str | None) -> str | None:
    """The ARN of the role in a valid `aws:assumeRoles` (JSON); None for none."""
    arn = next(iter(_roles(text) or ()), mapping(None)).get("roleArn")
    return arn if isinstance(arn, str) else None


def assumed_role_problems(text: str | None) -> Iterator[Problem]:
    """Roles that the AWS CLI cannot assume, which gets the tokens for the cluster."""
    roles, arn = _roles(text), assumed_role(text)
    is_known = roles is not None and len(roles) == 1 and set(roles[0]) <= _ROLE_SETTINGS
    if roles == () or (is_known and arn is not None and _PRINCIPAL.fullmatch(arn)):
        return
    yield Problem(
        field=ASSUME_ROLES,
        value=format_value(text),
        allowed="a list of one role with roleArn, sessionName and duration: `aws eks get-token` assumes it too, to reach the "
        "cluster",
        fix=f'Write, for example, `{ASSUME_ROLES}: [{{roleArn: "arn:aws:iam::123456789012:role/deployer"}}]`. For a chain of '
        "roles or an external id, write a profile with role_arn and source_profile, and name it in aws:profile.",
    )


def _roles(text: str | None) -> tuple[Json, ...] | None:
    """The list of roles; None for anything but a list."""
    if not text:
        return ()
    try:
        found: JsonValue = json.loads(text)
    except ValueError:
        return None
    return tuple(map(mapping, found)) if isinstance(found, list) else None
