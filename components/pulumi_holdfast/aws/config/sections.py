"""The sections of a stack on AWS: its document, and the region and the role of the provider beside it."""

import json
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from pulumi_holdfast.aws.control_plane.addon_versions import ADDONS
from pulumi_holdfast.config import versions
from pulumi_holdfast.config.cidrs import FEWEST_ZONES, MOST_ZONES
from pulumi_holdfast.config.clusters import AcceptedClusterSection
from pulumi_holdfast.config.errors import setting_fix
from pulumi_holdfast.config.fields import (
    OR_OUTPUT,
    Allowed,
    Cidr,
    DnsLabel,
    Section,
    Text,
    TextOrOutput,
    Variant,
    error_with_fix,
)
from pulumi_holdfast.config.sections import (
    ACCEPTS_FROM_TEXT,
    COMPACT_TEXT,
    POOLS_TEXT,
    RETAIN_TEXT,
    ROLL_OUT_TEXT,
    CloudDocument,
    ClusterSection,
    ExistingCluster,
    KarpenterPoolSection,
    ReservationSection,
    RetainDays,
    network_of,
)
from pulumi_holdfast.config.storage import (
    STORAGE_FIELD,
    THROUGHPUT_TEXT,
    ZONE_TEXT,
    BucketName,
    VolumeSection,
)
from pulumi_holdfast.kubernetes.namespace_roles import NamespaceRole
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import Machine, machine_catalogue, regions, select_machines
from pulumi_holdfast.ladder.pools import Pool

if TYPE_CHECKING:
    from pulumi_holdfast.config.fields import TextsOrOutput

#: The keys of the AWS provider, so that there are no second values.
REGION: Final = "aws:region"
ASSUME_ROLES: Final = "aws:assumeRoles"

#: The registries that ECR caches: by host, those that it reads without credentials, and those whose credentials it needs.
OPEN_UPSTREAMS: Final = ("public.ecr.aws", "quay.io", "registry.k8s.io")
CLOSED_UPSTREAMS: Final = ("ghcr.io", "registry-1.docker.io", "registry.gitlab.com")
_HOSTS_OF_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "hub.docker.com")
_AZURE_HOST: Final = re.compile(r"[a-z0-9]{5,50}\.azurecr\.io", re.ASCII)

IMAGE_RELEASE: Final = f"{versions.NODE_IMAGE_KUBELET}-{versions.NODE_IMAGE_RELEASE}"

_ACCOUNT_DIGITS: Final = 12
_SESSION: Final = re.compile(r"arn:(aws[a-z-]*):sts::([0-9]{12}):assumed-role/([^/]+)/.+", re.ASCII)
_PRINCIPAL: Final = re.compile(
    r"arn:(aws|aws-cn|aws-us-gov):iam::[0-9]{12}:(role|user)/([\x21-\x7e]+/)*[\w+=,.@-]{1,64}", re.ASCII
)
_ZONE: Final = r"[a-z]{2,3}(-[a-z]+)+-[0-9]+[a-z]"
_ZONE_FIX: Final = "Write a region and the letter of one of its zones, such as us-east-1a."
_PATH: Final = re.compile(r"/([\x21-\x2e\x30-\x7e]+/)*", re.ASCII)
_LONGEST_PATH: Final = 512
#: The settings of an assumed role with which the AWS CLI can get a cluster's token too.
_ROLE_SETTINGS: Final = frozenset({"roleArn", "sessionName", "duration"})
_ROLES_EXAMPLE: Final = '[{roleArn: "arn:aws:iam::123456789012:role/deployer"}]'


def _region(region: str) -> str:
    if region not in regions("aws"):
        raise error_with_fix(setting_fix(REGION, region, regions("aws"), "us-east-1"))
    return region


def _role(text: object) -> str | None:
    """The ARN of the one role that the provider assumes."""
    try:
        found: JsonValue = json.loads(text) if isinstance(text, str) and text else []
    except ValueError:
        found = None
    roles: tuple[Json, ...] | None = tuple(map(mapping, found)) if isinstance(found, list) else None
    if roles == ():
        return None
    arn = roles[0].get("roleArn") if roles is not None and len(roles) == 1 else None
    if (
        roles is None
        or not isinstance(arn, str)
        or not _PRINCIPAL.fullmatch(arn)
        or not set(roles[0]) <= _ROLE_SETTINGS
    ):
        raise error_with_fix(
            f"Write, for example, `{ASSUME_ROLES}: {_ROLES_EXAMPLE}`. For a chain of roles or an external id, write a profile "
            "with role_arn and source_profile, and name it in aws:profile."
        )
    return arn


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
    zones = tuple(str(zone) for zone in cast("Sequence[object]", value))
    if not all(re.fullmatch(_ZONE, zone, re.ASCII) for zone in zones):
        raise error_with_fix(_ZONE_FIX)
    if len(set(zones)) != len(zones) or not FEWEST_ZONES <= len(zones) <= MOST_ZONES:
        raise error_with_fix(f"Write {FEWEST_ZONES} to {MOST_ZONES} zones, each once: EKS needs two or more.")
    return zones


def _path(text: str) -> str:
    if len(text) > _LONGEST_PATH or not _PATH.fullmatch(text):
        bare = text.strip("/")
        raise error_with_fix(f'Write "/{bare}/".' if bare else 'Write, for example, "/holdfast/".')
    return text


def _upstream(text: str) -> str:
    if text in (*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS) or _AZURE_HOST.fullmatch(text):
        return text
    host = text.partition("://")[2] or text
    host = "registry-1.docker.io" if host in _HOSTS_OF_DOCKER_HUB else host.rstrip("/")
    if host in (*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS):
        raise error_with_fix(f'Write "{host}".')
    raise error_with_fix("Write one of them, or copy the images to a repository of your own.")


def _id(what: str, prefix: str, command: str) -> Text:
    pattern = rf"{prefix}-([0-9a-f]{{8}}|[0-9a-f]{{17}})"
    return Text(what, f"{prefix}-0123456789abcdef0", pattern, f"Write one that `aws ec2 {command}` prints.")


AccountId = Annotated[
    str, BeforeValidator(_account), Allowed("the 12 digits of an AWS account, in quotes", '"123456789012"')
]
PrincipalArn = Annotated[
    TextOrOutput,
    AfterValidator(_principal),
    Allowed("the ARN of an IAM role or user", "arn:aws:iam::123456789012:role/platform"),
    OR_OUTPUT,
]
KeyArn = Annotated[
    TextOrOutput,
    Text(
        "the ARN of a symmetric KMS key in the stack's region",
        "arn:aws:kms:us-east-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef",
        r"arn:(aws|aws-cn|aws-us-gov):kms:[a-z0-9-]+:[0-9]{12}:key/(mrk-[0-9a-f]{32}|[0-9a-f-]{36})",
        "Write the output of `aws kms describe-key --key-id KEY --query KeyMetadata.Arn`.",
    ),
    OR_OUTPUT,
]
PolicyArn = Annotated[
    TextOrOutput,
    Text(
        "the ARN of an IAM policy",
        "arn:aws:iam::123456789012:policy/boundary",
        r"arn:(aws|aws-cn|aws-us-gov):iam::([0-9]{12}|aws):policy/([\x21-\x7e]+/)*[\w+=,.@-]{1,128}",
        "Write, for example, arn:aws:iam::123456789012:policy/boundary.",
    ),
    OR_OUTPUT,
]
Upstream = Annotated[
    str,
    AfterValidator(_upstream),
    Allowed(
        f"the host of a registry that ECR caches: {', '.join((*OPEN_UPSTREAMS, *CLOSED_UPSTREAMS))} or NAME.azurecr.io",
        "registry-1.docker.io",
    ),
]
RepositoryPrefix = Annotated[
    str,
    Text(
        "2 to 30 lower-case letters, digits, dots, underscores, hyphens and slashes between them",
        "docker-hub",
        r"(?=.{2,30}\Z)[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*)*",
        "Write, for example, docker-hub: cached images are in docker-hub/….",
    ),
]
CredentialArn = Annotated[
    TextOrOutput,
    Text(
        "the ARN of a secret of this account and region whose name begins with ecr-pullthroughcache/",
        "arn:aws:secretsmanager:us-east-1:123456789012:secret:ecr-pullthroughcache/docker-hub-AbCdEf",
        r"arn:aws:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:ecr-pullthroughcache/[\w/+=.@-]{1,512}",
        "Write the ARN that `aws secretsmanager create-secret --name ecr-pullthroughcache/NAME` prints.",
    ),
    OR_OUTPUT,
]
IamPath = Annotated[
    str, AfterValidator(_path), Allowed("a path that starts and ends with a slash", "/holdfast/")
]
Zone = Annotated[str, Text("a zone, such as us-east-1a", "us-east-1a", _ZONE, _ZONE_FIX)]
Zones = Annotated[
    int | tuple[str, ...],
    PlainValidator(_zones, json_schema_input_type=int | tuple[str, ...]),
    Allowed(f"a number of zones, {FEWEST_ZONES} to {MOST_ZONES}, or a list of as many zones", "3"),
]
EksClusterName = Annotated[
    str,
    Text(
        "the name of an EKS cluster in the stack's region",
        "shared",
        r"[0-9A-Za-z][0-9A-Za-z_-]{0,99}",
        "Write one that `aws eks list-clusters` prints.",
    ),
]
VpcId = Annotated[
    TextOrOutput, _id("the id of a VPC", "vpc", "describe-vpcs --query Vpcs[].VpcId"), OR_OUTPUT
]
SubnetId = Annotated[
    TextOrOutput,
    _id("the id of a subnet", "subnet", "describe-subnets --query Subnets[].SubnetId"),
    OR_OUTPUT,
]
if TYPE_CHECKING:
    SubnetIds: TypeAlias = TextsOrOutput
else:
    SubnetIds = Annotated[tuple[SubnetId, ...], Field(min_length=2), OR_OUTPUT]
ReservationId = Annotated[
    str,
    _id(
        "the id of a capacity reservation or of a Capacity Block",
        "cr",
        "describe-capacity-reservations --query CapacityReservations[].CapacityReservationId",
    ),
]


#: Families of one architecture, of which every region offers at least one.
_SYSTEM_FAMILIES: Final = ("m7i", "m6i", "m7a")


class AwsSystemNodes(Section):
    """The on-demand nodes of the operators, which belong to no pool."""

    instance_types: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="of one architecture, without GPUs, with at least 2 vCPUs and 4 GiB each; by default those of m7i, m6i and m7a in "
        "`size` that the region offers",
        examples=["[m7i.large, m6i.large]"],
    )
    size: Literal["large", "xlarge", "2xlarge", "4xlarge"] | None = Field(
        default=None,
        description="without `instanceTypes`: the size of the machines, `large` by default",
        examples=["xlarge"],
    )
    # The two replicas of Karpenter need two nodes in two zones.
    count: int = Field(default=2, ge=2, le=10, description="how many")

    def types(self, region: str) -> tuple[str, ...]:
        """The instance types: those of the configuration, or those of the default families that the region offers."""
        if self.instance_types is not None:
            return self.instance_types
        sold = select_machines(_SYSTEM_FAMILIES, (self.size or "large",), machine_catalogue("aws"), region)
        return tuple(machine.name for machine in sold)


class UpgradePolicy(StrEnum):
    """What EKS does when the standard support of a Kubernetes version ends."""

    EXTENDED = "extended"
    STANDARD = "standard"


class LogType(StrEnum):
    """The logs of an EKS control plane, as EKS names them."""

    API = "api"
    AUDIT = "audit"
    AUTHENTICATOR = "authenticator"
    CONTROLLER_MANAGER = "controllerManager"
    SCHEDULER = "scheduler"


#: The retention periods that CloudWatch accepts, in days.
RETENTION_DAYS: Final = (
    1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653,
)  # fmt: skip


class AwsLogs(Section):
    """The control plane's logs in CloudWatch."""

    types: tuple[LogType, ...] = Field(default=tuple(LogType), description="which; an empty list for none")
    retain_days: int = Field(
        default=90, description="how many days they are kept, a period that CloudWatch accepts"
    )


def _addons(pins: Mapping[str, str]) -> Mapping[str, str]:
    for name, version in pins.items():
        if name not in ADDONS:
            raise error_with_fix(f"Write one of {', '.join(ADDONS)} instead of {name}.")
        if not re.fullmatch(r"v[0-9]+\.[0-9]+\.[0-9]+-eksbuild\.[0-9]+", version, re.ASCII):
            raise error_with_fix(
                f"Write a version that `aws eks describe-addon-versions --addon-name {name}` prints, such as v1.2.3-eksbuild.1."
            )
    return pins


AddonPins = Annotated[
    Mapping[str, str],
    AfterValidator(_addons),
    Allowed("names of EKS add-ons with their versions", "{metrics-server: v0.8.1-eksbuild.10}"),
]


class AwsNodes(Section):
    """What all machines of the stack have."""

    image: Annotated[
        str,
        Text(
            "a release of EKS's Amazon Linux 2023 images: its kubelet and its date",
            IMAGE_RELEASE,
            r"1\.[0-9]{2}\.[0-9]+-20[0-9]{6}",
            "Write a release of https://github.com/awslabs/amazon-eks-ami/releases, such as "
            + IMAGE_RELEASE
            + ".",
        ),
    ] = Field(
        default=IMAGE_RELEASE,
        description="the release of EKS's Amazon Linux 2023 images. System nodes move to it at once, pools with `rollOut`",
    )
    repair: bool = Field(
        default=True,
        description="`false`: Karpenter and EKS replace no node that EKS's node monitoring agent reports as unhealthy. The agent never "
        "takes a report back, also not of DCGM that started late",
    )


class AwsCluster(ClusterSection):
    """The control plane."""

    fixes: ClassVar[Mapping[str, str]] = {
        "kubeconfig": "Leave it out: the program gets a token from EKS whenever it needs one.",
        "access": "Write it beside cluster; for the API server, write publicAccessCidrs.",
    }

    public_access_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        max_length=40,
        description="public CIDRs that may reach the API server; without any it has no public endpoint",
    )
    allow_public_access_from_anywhere: bool = Field(
        default=False, description="required with `publicAccessCidrs: [0.0.0.0/0]`, rejected otherwise"
    )
    private_access_cidrs: tuple[Cidr, ...] = Field(
        default=(),
        description="CIDRs of the network, or of networks connected to it, that may reach the private endpoint",
        examples=["[10.0.0.0/8]"],
    )
    service_cidr: Cidr = Field(
        default="172.20.0.0/16", description="the CIDR of Services, /12 to /24; cannot be changed later"
    )
    admins: tuple[PrincipalArn, ...] = Field(
        default=(), description="who administers the cluster, in addition to its creator"
    )
    secrets_key: KeyArn | None = Field(
        default=None,
        description="the ARN of a KMS key that encrypts the cluster's secrets, by default a key of the stack; cannot be changed on an "
        "existing cluster",
    )
    addons: AddonPins = Field(
        default_factory=dict[str, str],
        description="versions of EKS add-ons other than those that are pinned for the version of Kubernetes: "
        + ", ".join(f"`{name}`" for name in ADDONS),
        examples=["{metrics-server: v0.8.1-eksbuild.10}"],
    )
    upgrade_policy: UpgradePolicy = Field(
        default=UpgradePolicy.EXTENDED,
        description="what follows a version's standard support: `extended` support, which costs more, or an automatic upgrade "
        "(`standard`)",
    )
    logs: AwsLogs = Field(
        default_factory=AwsLogs,
        description="the control plane's logs in CloudWatch",
        examples=["{retainDays: 30}"],
    )
    system_nodes: AwsSystemNodes = Field(
        default_factory=AwsSystemNodes,
        description="on-demand machines for the operators, tainted `CriticalAddonsOnly`",
        examples=["{count: 2}"],
    )


class AwsExistingCluster(ExistingCluster):
    """An existing EKS cluster in the stack's region."""

    existing: EksClusterName = Field(
        description="an existing cluster that the stack uses instead of a new one ([existing clusters](existing-clusters.md))"
    )


class Nat(StrEnum):
    """The number of NAT gateways."""

    SINGLE = "single"
    PER_ZONE = "per-zone"


class AwsNetworkSection(Section):
    """The fields of both kinds of network."""

    isolated: bool = Field(
        default=False,
        description="no internet access, interface endpoints instead; requires `mirror.images`. In an existing VPC the endpoints for "
        "`ec2`, `eks`, `eks-auth`, `sts`, `ssm`, `sqs`, `ecr.api`, `ecr.dkr` and S3 must exist",
    )


class AwsNewNetwork(AwsNetworkSection):
    """A new VPC for the stack."""

    # components/pulumi_holdfast/config/cidrs.py checks the range when it divides it.
    cidr: str = Field(
        default="10.40.0.0/16",
        description="a private block of /16 to /22 that overlaps neither `serviceCidr` nor any network you will connect",
    )
    zones: Zones = Field(
        default=3,
        description="a number selects the account's first zones by name that EKS supports",
        examples=["3"],
    )
    nat: Nat | None = Field(
        default=None,
        description="one NAT gateway, the default, or `per-zone`: more expensive, but a zone failure does not cut off the other zones",
    )

    def zone_names(self, available: Sequence[str]) -> tuple[str, ...]:
        """The first zones of those that the account has; fewer than configured if the account has fewer."""
        return tuple(available[: self.zones]) if isinstance(self.zones, int) else self.zones


class AwsExistingNetwork(AwsNetworkSection):
    """An existing VPC. The stack changes and tags nothing in it."""

    otherwise: ClassVar[str] = (
        "Leave it out: an existing network has its own; without vpcId and privateSubnetIds the stack creates a network."
    )

    vpc_id: VpcId = Field(description="the VPC of an existing network, which the stack does not change")
    private_subnet_ids: SubnetIds = Field(
        description="subnets of the VPC in at least two zones, with routes to AWS and, unless `isolated`, to the internet",
        examples=["[subnet-0123456789abcdef0, subnet-0123456789abcdef1]"],
    )


class AwsClusterNetwork(AwsNetworkSection):
    """The network of an existing cluster, with the subnets that it was created with."""


AwsNetworkConfig: TypeAlias = Annotated[
    AwsNewNetwork | AwsExistingNetwork | AwsClusterNetwork,
    Variant(("vpcId", "privateSubnetIds"), AwsExistingNetwork, AwsNewNetwork),
]


class AwsReservation(ReservationSection):
    """An EC2 capacity reservation, or a Capacity Block.

    EC2 begins to terminate the instances of a block 30 minutes before its end, and Karpenter to drain them 10 minutes before
    that. A job needs some minutes more to leave by itself.
    """

    fixes: ClassVar[Mapping[str, str]] = {**ReservationSection.fixes, "arn": "Write id."}
    taken_back_early: ClassVar[timedelta] = timedelta(minutes=45)

    id: ReservationId = Field(description="the id of a capacity reservation or of a Capacity Block")


class AwsPool(KarpenterPoolSection):
    """Nodes of one capacity type, with instance types by name or by family and size."""

    instance_types: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="the types that the pool may launch; all with GPUs (the pool is then tainted `nvidia.com/gpu=present:NoSchedule`) or "
        "all without",
        examples=["[p4d.24xlarge, p4de.24xlarge]"],
    )
    families: tuple[str, ...] | None = Field(
        default=None,
        min_length=1,
        description="with `sizes` instead of `instanceTypes`: all types of these families in these sizes that the region offers, on a "
        "spot pool those offered on spot",
        examples=["[m7i, m7a, m6i]"],
    )
    sizes: tuple[str, ...] | None = Field(
        default=None, min_length=1, description="the sizes of the families", examples=["[xlarge, 2xlarge]"]
    )
    zones: tuple[Zone, ...] | None = Field(
        default=None,
        min_length=1,
        description="the zones of the pool's machines; by default all of the network",
    )
    efa: bool = Field(
        default=False,
        description="the machines have Elastic Fabric Adapters and a security group that allows traffic between them",
    )
    compact_placement: bool = Field(default=False, description=COMPACT_TEXT)
    reservation: AwsReservation | None = Field(
        default=None,
        description="on reserved pools",
        examples=['{id: cr-0123456789abcdef0, ends: "2026-12-08T11:30:00Z"}'],
    )
    disk_gib: int = Field(
        default=100,
        alias="diskGiB",
        ge=30,
        le=16384,
        description="the size of the machines' disk, which is encrypted",
    )
    roll_out: bool = Field(default=False, description=ROLL_OUT_TEXT)

    def machines(self, region: str | None) -> tuple[Machine, ...]:
        """The pool's known machine types.

        For a pool by family, those that the region offers, without one those of any; and on a spot pool those on spot.
        """
        catalogue = machine_catalogue("aws")
        if self.instance_types is not None:
            return tuple(catalogue[name] for name in self.instance_types if name in catalogue)
        selected = select_machines(self.families or (), self.sizes or (), catalogue, region)
        return tuple(
            machine for machine in selected if machine.on_spot or self.capacity is not CapacityType.SPOT
        )

    def as_pool(self, region: str) -> Pool:
        """The pool for the rules in `scheduling`."""
        return self.pool_of(self.machines(region), self.reservation)


class AwsCheckpoints(Section):
    """The S3 bucket for checkpoints."""

    otherwise: ClassVar[str] = "Leave it out: the stack creates the bucket, and names it."

    retain_days: RetainDays = Field(default=30, description=RETAIN_TEXT)
    kms: bool = Field(
        default=True, description="encrypted with the stack's KMS key; `false`: with S3 managed keys"
    )
    drop_key: bool = Field(
        default=False,
        description="with `kms: false`, deletes the key of earlier checkpoints, which become unreadable. Without it the key and the "
        "access of jobs to it stay ([operations](operations.md#checkpoints-under-a-former-key))",
    )


class AwsVolume(VolumeSection):
    """A volume of data on AWS."""

    existing: BucketName | None = Field(
        default=None,
        description="of a `bucket` volume, a bucket of the account that there is already; by default the stack creates one",
    )
    zone: Zone | None = Field(default=None, description=ZONE_TEXT)
    throughput: Literal[125, 250, 500, 1000] = Field(default=125, description=THROUGHPUT_TEXT)
    imports: DnsLabel | None = Field(
        default=None,
        description="of a `parallel` volume, the `bucket` volume whose objects are its files: it imports what is added, changed or "
        "deleted there, and exports nothing",
        examples=["datasets"],
    )
    subnet_id: SubnetId | None = Field(
        default=None,
        description="of a `parallel` volume in an existing network, the private subnet of its zone",
    )


class AwsAccess(Section):
    """The access of an IAM principal to training namespaces."""

    principal: PrincipalArn = Field(description="who", examples=["arn:aws:iam::123456789012:role/ml"])
    namespaces: tuple[str, ...] = Field(
        min_length=1, description="training namespaces of this stack", examples=["[vision]"]
    )
    role: NamespaceRole = Field(
        default=NamespaceRole.SUBMIT,
        description="`submit` creates, changes and deletes JobSets, RayJobs and ConfigMaps, deletes pods and reads their logs; `view` only "
        "reads",
    )


class AwsPullThroughCache(Section):
    """An upstream registry whose images ECR caches."""

    prefix: RepositoryPrefix = Field(
        description="the cached repositories are below it; once in an account and region: another stack needs other prefixes"
    )
    upstream: Upstream = Field(
        description=f"the registry; {', '.join(CLOSED_UPSTREAMS)} and NAME.azurecr.io need `credentialArn`"
    )
    credential_arn: CredentialArn | None = Field(
        default=None,
        description="a Secrets Manager secret with the upstream's credentials, in the stack's account and region",
    )


class AwsIam(Section):
    """What every IAM role of the stack has."""

    permissions_boundary: PolicyArn | None = Field(
        default=None, description="a policy that limits every role of the stack"
    )
    path: IamPath = Field(
        default="/",
        description="the path of the stack's roles and instance profiles; changing it replaces them",
        examples=["/holdfast/"],
    )


class AwsPlatform(CloudDocument):
    """A stack on AWS: its document, the region, and the role that the provider assumes; None for none."""

    fixes: ClassVar[Mapping[str, str]] = {
        "region": "Write aws:region beside holdfast:platform, where the AWS provider reads it.",
        "resourcePools": "Write pools.",
    }

    cloud: Literal["aws"] = Field(description="the cloud; it determines which of the fields below exist")
    region: Annotated[
        str,
        AfterValidator(_region),
        Allowed("a region from `aws ec2 describe-regions --query Regions[].RegionName`", "us-east-1"),
    ] = Field(alias=REGION, description="the region of the stack")
    role_arn: Annotated[
        str | None,
        BeforeValidator(_role),
        Allowed(
            "a list of one role with roleArn, sessionName and duration: `aws eks get-token` assumes it too, to reach the cluster",
            _ROLES_EXAMPLE,
        ),
    ] = Field(default=None, alias=ASSUME_ROLES, description="the role that the provider assumes")
    account: AccountId | None = Field(
        default=None, description="the program refuses to run in any other account"
    )
    cluster: Annotated[
        AwsCluster | AwsExistingCluster, Variant(("existing",), AwsExistingCluster, AwsCluster)
    ] = Field(
        default_factory=AwsCluster,
        description="the control plane ([below](#cluster))",
        examples=["{publicAccessCidrs: [203.0.113.0/24]}"],
    )
    network: AwsNetworkConfig = Field(
        default_factory=network_of(AwsNewNetwork, AwsClusterNetwork),
        description="the network ([below](#network))",
        examples=["{cidr: 10.40.0.0/16, zones: 3}"],
    )
    pools: tuple[AwsPool, ...] = Field(
        description=POOLS_TEXT,
        examples=[
            "[{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}]"
        ],
    )
    checkpoints: AwsCheckpoints = Field(
        default_factory=AwsCheckpoints,
        description="the store of checkpoints ([below](#checkpoints))",
        examples=["{retainDays: 30}"],
    )
    storage: Annotated[tuple[AwsVolume, ...], STORAGE_FIELD] = ()  # pyright: ignore[reportIncompatibleVariableOverride] - the model is frozen
    access: tuple[AwsAccess, ...] = Field(
        default=(),
        description="who may use the training namespaces ([users](#aws-only))",
        examples=["[{principal: arn:aws:iam::123456789012:role/ml, namespaces: [vision], role: submit}]"],
    )
    nodes: AwsNodes = Field(
        default_factory=AwsNodes,
        description="what all machines have",
        examples=[f"{{image: {IMAGE_RELEASE}}}"],
    )
    iam: AwsIam = Field(
        default_factory=AwsIam, description="the stack's IAM roles", examples=["{path: /holdfast/}"]
    )
    pull_through_cache: tuple[AwsPullThroughCache, ...] = Field(
        default=(),
        description="upstream registries whose images ECR caches in the account's registry ([large images](#pullthroughcache))",
        examples=["[{prefix: quay, upstream: quay.io}]"],
    )
    accepts_from: tuple[AcceptedClusterSection, ...] = Field(
        default=(),
        max_length=1,
        description=ACCEPTS_FROM_TEXT,
        examples=[
            "[{name: us-east-1, issuer: https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF, namespaces: [vision]}]"
        ],
    )

    @property
    def partition(self) -> str:
        """The partition of the region: `aws`, `aws-cn` or `aws-us-gov`."""
        if self.region.startswith("cn-"):
            return "aws-cn"
        return "aws-us-gov" if self.region.startswith("us-gov-") else "aws"

    @property
    def has_efa(self) -> bool:
        """Whether any pool uses Elastic Fabric Adapters."""
        return any(pool.efa for pool in self.pools)

    def scheduling_pools(self) -> tuple[Pool, ...]:
        """The pools for the rules in `scheduling`, in their order."""
        return tuple(pool.as_pool(self.region) for pool in self.pools)

    @property
    def existing_cluster(self) -> str | None:
        """The name of the existing cluster; None if the stack creates one."""
        return self.cluster.existing if isinstance(self.cluster, AwsExistingCluster) else None

    def system_machines(self) -> tuple[Machine, ...]:
        """The machine types of the system nodes; none for an existing cluster."""
        if isinstance(self.cluster, AwsExistingCluster):
            return ()
        catalogue = machine_catalogue("aws")
        return tuple(catalogue[name] for name in self.cluster.system_nodes.types(self.region))
