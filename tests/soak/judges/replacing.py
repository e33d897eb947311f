"""Which fields replace a resource, from the sources of the providers.

They are the Terraform provider that pulumi-aws wraps, and pulumi-azure-native.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from pulumi_holdfast.rehearsal.clouds.catalogue import REPLACING, Rules
from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.clouds.sdk import Property, PropertyType, ValueKind, argument_properties
from pulumi_holdfast.rehearsal.errors import RehearsalError

#: Token of AWS → the file, with the declaration of the schema if that is not the resource itself.
SOURCES: Final[Mapping[str, str]] = {
    "aws:amp/scraper:Scraper": "amp/scraper.go",
    "aws:amp/workspace:Workspace": "amp/workspace.go",
    "aws:cloudwatch/eventRule:EventRule": "events/rule.go",
    "aws:cloudwatch/eventTarget:EventTarget": "events/target.go",
    "aws:cloudwatch/logGroup:LogGroup": "logs/group.go",
    "aws:ec2/capacityReservation:CapacityReservation": "ec2/ec2_capacity_reservation.go",
    "aws:ec2/defaultSecurityGroup:DefaultSecurityGroup": "ec2/vpc_default_security_group.go",
    "aws:ec2/eip:Eip": "ec2/ec2_eip.go",
    "aws:ec2/internetGateway:InternetGateway": "ec2/vpc_internet_gateway.go",
    "aws:ec2/launchTemplate:LaunchTemplate": "ec2/ec2_launch_template.go",
    "aws:ec2/natGateway:NatGateway": "ec2/vpc_nat_gateway.go",
    "aws:ec2/placementGroup:PlacementGroup": "ec2/ec2_placement_group.go",
    "aws:ec2/route:Route": "ec2/vpc_route.go",
    "aws:ec2/routeTable:RouteTable": "ec2/vpc_route_table.go",
    "aws:ec2/routeTableAssociation:RouteTableAssociation": "ec2/vpc_route_table_association.go",
    "aws:ec2/securityGroup:SecurityGroup": "ec2/vpc_security_group.go",
    "aws:ec2/subnet:Subnet": "ec2/vpc_subnet.go",
    "aws:ec2/vpc:Vpc": "ec2/vpc_.go",
    "aws:ec2/vpcEndpoint:VpcEndpoint": "ec2/vpc_endpoint.go",
    "aws:ecr/pullThroughCacheRule:PullThroughCacheRule": "ecr/pull_through_cache_rule.go",
    "aws:efs/accessPoint:AccessPoint": "efs/access_point.go",
    "aws:efs/fileSystem:FileSystem": "efs/file_system.go",
    "aws:efs/fileSystemPolicy:FileSystemPolicy": "efs/file_system_policy.go",
    "aws:efs/mountTarget:MountTarget": "efs/mount_target.go",
    "aws:fsx/dataRepositoryAssociation:DataRepositoryAssociation": "fsx/data_repository_association.go",
    "aws:fsx/lustreFileSystem:LustreFileSystem": "fsx/lustre_file_system.go",
    "aws:eks/accessEntry:AccessEntry": "eks/access_entry.go",
    "aws:eks/accessPolicyAssociation:AccessPolicyAssociation": "eks/access_policy_association.go",
    "aws:eks/addon:Addon": "eks/addon.go",
    "aws:eks/cluster:Cluster": "eks/cluster.go",
    "aws:eks/identityProviderConfig:IdentityProviderConfig": "eks/identity_provider_config.go",
    "aws:eks/nodeGroup:NodeGroup": "eks/node_group.go",
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": "eks/pod_identity_association.go",
    "aws:iam/instanceProfile:InstanceProfile": "iam/instance_profile.go",
    "aws:iam/policy:Policy": "iam/policy.go",
    "aws:iam/role:Role": "iam/role.go",
    "aws:iam/rolePolicy:RolePolicy": "iam/role_policy.go",
    "aws:iam/rolePolicyAttachment:RolePolicyAttachment": "iam/role_policy_attachment.go",
    "aws:iam/serviceLinkedRole:ServiceLinkedRole": "iam/service_linked_role.go",
    "aws:kms/key:Key": "kms/key.go",
    "aws:s3/bucket:Bucket": "s3/bucket.go",
    "aws:s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration": "s3/bucket_lifecycle_configuration.go",
    "aws:s3/bucketPolicy:BucketPolicy": "s3/bucket_policy.go",
    "aws:s3/bucketPublicAccessBlock:BucketPublicAccessBlock": "s3/bucket_public_access_block.go",
    "aws:s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration": "s3/bucket_server_side_encryption_configuration.go",
    "aws:s3/bucketVersioning:BucketVersioning": "s3/bucket_versioning.go",
    "aws:sqs/queue:Queue": "sqs/queue.go:queueSchema",
    "aws:sqs/queuePolicy:QueuePolicy": "sqs/queue_policy.go",
    "aws:vpc/securityGroupEgressRule:SecurityGroupEgressRule": "ec2/vpc_security_group_ingress_rule.go",
    "aws:vpc/securityGroupIngressRule:SecurityGroupIngressRule": "ec2/vpc_security_group_ingress_rule.go",
}  # fmt: skip
_FOLDER: Final = "internal/service"
_LITERAL: Final = re.compile(r"""//[^\n]*|"(?:[^"\\\n]|\\.)*"|`[^`]*`""")
# gofmt ends a declaration at the first closing bracket in the first column.
_DECLARATION: Final = re.compile(
    r"^(?P<tab>\t?)(?:func (?:\([^)\n]*\) )?(?P<function>\w+)\((?P<rest>[^\n]*)\{|(?:var )?(?P<variable>\w+) +=[^\n]*\{)\n"
    r"(?P<body>.*?)^(?P=tab)\}",
    re.MULTILINE | re.DOTALL,
)
_CONSTANT: Final = re.compile(r'^\t(\w+)\s+= "(\w+)"$', re.MULTILINE)
_TOKEN: Final = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\])*"|`[^`]*`|[A-Za-z_][\w.]*|\S', re.DOTALL)
#: The properties that only Azure refuses to change, and those that its API marks as set once.
_SET_ONCE: Final[Mapping[str, frozenset[str]]] = {
    "azure-native:network:NatGateway": frozenset({"location", "zones"}),
    "azure-native:network:PrivateEndpoint": frozenset({"location"}),
    "azure-native:network:PublicIPAddress": frozenset({"zones"}),
    "azure-native:managedidentity:UserAssignedIdentity": frozenset({"location"}),
}
#: In the cluster's own list of pools; no stack sets it, and paths into lists are not simulated.
_NOT_SIMULATED: Final[Mapping[str, frozenset[str]]] = {
    "azure-native:containerservice:ManagedCluster": frozenset({"nodePublicIPTags"})
}
_OPENS: Final = frozenset("{([")
_CLOSES: Final = frozenset("})]")


def replacing(token: str, checkout: Path) -> list[str]:
    """Return the inputs that replace a resource of AWS, also nested ones (`vpcConfig.subnetIds`).

    `checkout` has the sources of the provider. Replacements that the provider decides by the values (`CustomizeDiff`)
    are not listed. Raises RehearsalError where a source or a declaration does not exist.
    """
    inputs = Schema.for_package("aws").resource(token).inputs
    name, _, declaration = SOURCES[token].partition(":")
    file = checkout / _FOLDER / name
    package = _Package(file.parent, _constants(checkout / "names"))
    paths = package.paths(package.entry(file, declaration), ())
    found = {dotted for path in paths if (dotted := _wired(path, inputs))}
    # A block whose fields are marked is itself marked only for being added and removed.
    return sorted(path for path in found if not any(other.startswith(f"{path}.") for other in found))


class _Package:
    """The declarations of a Go package that are schemas."""

    def __init__(self, folder: Path, names: Mapping[str, str]) -> None:
        self._schemas = _schemas(folder)
        self._names = {**names, **_constants(folder)}

    def entry(self, file: Path, name: str) -> str:
        """Return the body of a declaration of a file, without a name that of its resource."""
        if not file.is_file():
            raise RehearsalError(f"{file} does not exist")
        for one in _DECLARATION.finditer(_source(file)):
            title = one["function"] or one["variable"]
            if title == (name or "Schema") or (
                not name and (one["rest"] or "").endswith("*schema.Resource ")
            ):
                return one["body"]
        raise RehearsalError(f"{file} declares no {name or 'resource'}")

    def paths(self, body: str, prefix: tuple[str, ...], seen: frozenset[str] = frozenset()) -> Iterator[tuple[str, ...]]:  # fmt: skip
        """Yield the path of each field in a body that is marked as replacing."""
        tokens = [one for one in _TOKEN.findall(body) if not one.startswith(("//", "/*"))]
        labels: list[str | None] = []
        key: str | None = None
        for index, token in enumerate(tokens):
            here = (*prefix, *(label for label in labels if label))
            if token in _OPENS:
                labels.append(key if token == "{" else None)
                key = None if token == "{" else key
            elif token in _CLOSES:
                if labels:
                    labels.pop()
                key = None
            elif token == ",":
                key = None
            elif tokens[index + 1 : index + 2] == [":"] and self._key(token):
                key = self._key(token)
            elif _marks(tokens, index):
                yield here
            elif token in self._schemas and token not in seen:
                inner = (*here, key) if key else here
                yield from self.paths(self._schemas[token], inner, seen | {token})

    def _key(self, token: str) -> str | None:
        """Return the field that a key names: a text or a constant."""
        if token.startswith('"'):
            return token.strip('"')
        return self._names.get(token.removeprefix("names."))


def _marks(tokens: Sequence[str], index: int) -> bool:
    if tokens[index] == "ForceNew":
        return [*tokens[index + 1 : index + 3]] == [":", "true"]
    return tokens[index].endswith("planmodifier.RequiresReplace")


def _source(file: Path) -> str:
    """Return a Go file without its texts of several lines, in which a bracket may be in the first column."""
    return _LITERAL.sub(
        lambda found: '""' if found[0].startswith("`") else found[0], file.read_text(encoding="utf-8")
    )


@cache
def _schemas(folder: Path) -> Mapping[str, str]:
    files = (file for file in sorted(folder.glob("*.go")) if not file.stem.endswith("_test"))
    return {
        name: one["body"]
        for file in files
        for one in _DECLARATION.finditer(_source(file))
        if "schema" in (name := one["function"] or one["variable"]).lower() and name != "Schema"
    }


@cache
def _constants(folder: Path) -> Mapping[str, str]:
    files = (file for file in sorted(folder.glob("*.go")) if not file.stem.endswith("_test"))
    return dict(pair for file in files for pair in _CONSTANT.findall(file.read_text(encoding="utf-8")))


def _wired(path: Sequence[str], inputs: Mapping[str, Property]) -> str | None:
    """Return a path of the Terraform provider as the SDK names it, None where the SDK has no such input."""
    if not path:
        return None
    wanted = _folded(path[0])
    found = next((one for name, one in inputs.items() if _folded(name) == wanted), None)
    if found is None:
        return None
    if len(path) == 1:
        return found.name
    inner = _wired(path[1:], _members(found.types))
    return f"{found.name}.{inner}" if inner else None


def _members(types: Sequence[PropertyType]) -> Mapping[str, Property]:
    for one in types:
        if one.kind is ValueKind.OBJECT and one.shape is not None:
            return argument_properties(one.shape)
        if one.kind in (ValueKind.LIST, ValueKind.MAP) and (inner := _members(one.item)):
            return inner
    return {}


def _folded(name: str) -> str:
    """Return a key that is equal for `subnet_ids` and `subnetIds`; the SDK has the plural of lists."""
    return name.replace("_", "").lower().removesuffix("s")


def record(checkout: Path, source: str) -> None:
    """Write what replaces the resources of AWS to the simulator's list; `source` names the provider's version."""
    types = {token: replacing(token, checkout) for token in SOURCES}
    lines = ",\n".join(f"{json.dumps(token)}: {json.dumps(paths)}" for token, paths in types.items())
    text = f'{{\n"source": {json.dumps(source)},\n"types": {{\n{lines}\n}}\n}}\n'
    REPLACING.write_text(text, encoding="utf-8")


def replaced_otherwise(source: str, simulated: Mapping[str, Rules]) -> list[str]:
    """Return the properties that replace a resource of Azure in the simulator or in the provider, and not in both.

    `source` is the text of pulumi-azure-native's list.
    """
    found: list[str] = []
    for token, names in sorted(_listed(source).items()):
        if token not in simulated:
            continue
        ours = {path.rpartition(".")[2] for path in simulated[token].immutable} - {"resourceGroupName"}
        theirs = names - _NOT_SIMULATED.get(token, frozenset()) | _SET_ONCE.get(token, frozenset())
        for name in sorted(ours ^ theirs):
            where = "the simulator" if name in ours else "the provider"
            found.append(f"{token} {name}: only {where} replaces the resource")
    return found


def _listed(source: str) -> Mapping[str, frozenset[str]]:
    """Return the names in `forceNewMap` by type."""
    table = source.partition("var forceNewMap")[2].partition("var noForceNewMap")[0]
    table = re.sub(r"//.*", "", table)
    return {
        f"azure-native:{module[1].lower()}:{one[1]}": frozenset(re.findall(r'"(\w+)"', one[2]))
        for module in re.finditer(r'\n\t"(\w+)": \{(.*?)\n\t\},', table, re.DOTALL)
        for one in re.finditer(r'"(\w+)":\s+codegen\.NewStringSet\((.*?)\)', module[2], re.DOTALL)
    }
