"""Draws stacks with any combination of the optional features, and records what they register."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import ModuleType
from typing import Final, TypeAlias, cast

from pulumi import output

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.configurations import (
    DISK_ENCRYPTION_SET,
    DNS_ZONE,
    EXISTING_AZURE_NETWORK,
    GCP_KEY,
    REGISTRY,
    WORKSPACE,
    Document,
    aws_platform,
    entry,
    fixed_platform,
    gcp_platform,
    nap_platform,
    section,
)
from tests.support.fakes.pulumi_engine import Recorded, Recording

#: A feature: its name, and how it changes a document.
Feature: TypeAlias = "tuple[str, Callable[[Document], object]]"

# A drawn document can contradict itself, such as a mirror without images; then another one is drawn.
_TRIES: Final = 40
# The share of all features in a drawn document.
_SHARE: Final = 0.3


@dataclass(frozen=True, kw_only=True)
class Combination:
    """A stack with some features: the cloud's resources at `up`, and in a preview with unknown ids."""

    name: str
    known: Sequence[Recorded]
    unknown: Sequence[Recorded]


def _cluster(**fields: JsonValue) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        section(document, "cluster").update(fields)

    return change


def _pool(index: int, **fields: JsonValue) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        entry(document, "pools", index).update(fields)

    return change


def _whole(**fields: JsonValue) -> Callable[[Document], object]:
    def change(document: Document) -> None:
        document.update(fields)

    return change


_KEY: Final = "arn:aws:kms:us-west-2:123456789012:key/00000000-0000-0000-0000-000000000001"
_ROLE: Final = "arn:aws:iam::123456789012:role/ml"
_MIRROR: Final[Mapping[str, JsonValue]] = {"charts": aws_stacks.CHARTS, "images": aws_stacks.IMAGES}
_ZONE: Final = "us-west-2a"

_AWS: Final[Sequence[Feature]] = (
    ("unprotected", _whole(protected=False)),
    ("access", _whole(access=[{"principal": _ROLE, "namespaces": ["vision"], "role": "submit"}])),
    ("iam path", lambda document: section(document, "iam").update(path="/holdfast/")),
    (
        "permissions boundary",
        lambda document: section(document, "iam").update(
            permissionsBoundary="arn:aws:iam::123456789012:policy/boundary"
        ),
    ),
    ("pull through cache", _whole(pullThroughCache=aws_stacks.CACHES)),
    ("private endpoint", _cluster(privateAccessCidrs=["10.0.0.0/8"])),
    ("service range", _cluster(serviceCidr="172.21.0.0/16")),
    ("secrets key", _cluster(secretsKey=_KEY)),
    ("standard support", _cluster(upgradePolicy="standard")),
    ("logs", _cluster(logs={"types": ["api", "audit"], "retainDays": 30})),
    ("system nodes", _cluster(systemNodes={"instanceTypes": ["m7g.large", "m6g.large"], "count": 3})),
    (
        "existing network",
        _whole(network={"vpcId": aws_stacks.VPC, "privateSubnetIds": [*aws_stacks.SUBNETS]}),
    ),
    ("nat per zone", _whole(network={"cidr": "10.48.0.0/16", "zones": 2, "nat": "per-zone"})),
    ("isolated", _whole(network={"cidr": "10.48.0.0/18", "zones": 3, "isolated": True}, mirror=_MIRROR)),
    ("mirror", _whole(mirror=_MIRROR)),
    ("adapters", _pool(2, efa=True)),
    ("placement group", _pool(2, compactPlacement=True, zones=[_ZONE])),
    ("volume", _pool(1, diskGiB=500)),
    ("roll out", _pool(1, rollOut=True)),
    ("retention", lambda document: section(document, "checkpoints").update(retainDays=90)),
    ("job metrics", _whole(fallback={"monitoring": {"jobs": "cloud"}})),
    ("no key", lambda document: section(document, "checkpoints").update(kms=False)),
    ("drop key", lambda document: section(document, "checkpoints").update(kms=False, dropKey=True)),
)

_GCP: Final[Sequence[Feature]] = (
    ("unprotected", _whole(protected=False)),
    ("name of its own", _cluster(access={"dnsEndpoint": {"allowExternal": True}})),
    ("private", _cluster(access={"authorizedNetworks": ["10.0.0.0/8"]})),
    ("rapid", _cluster(channel="rapid")),
    ("extended", _cluster(channel="extended")),
    ("zonal", _cluster(location="us-central1-a", zones=["us-central1-a"])),
    ("system nodes", _cluster(systemNodes={"machineType": "e2-standard-8", "perZone": 2, "sparePerZone": 1})),
    ("window", _cluster(maintenance={"window": {"days": ["sunday"], "start": "04:00", "hours": 12}})),
    ("no image streaming", _cluster(imageStreaming=False)),
    ("database key", _cluster(secretsKey=GCP_KEY)),
    ("existing network", _whole(network={**gcp_stacks.BROUGHT})),
    ("ranges", _whole(network={"cidr": "10.50.0.0/18", "podsCidr": "10.52.0.0/14"})),
    (
        "accelerator",
        _pool(1, machineType="n1-standard-8", accelerator={"type": "nvidia-tesla-t4", "count": 1}),
    ),
    ("one zone", _pool(3, zones=["us-central1-a"])),
    ("compact placement", _pool(3, zones=["us-central1-a"], compactPlacement=True)),
    ("blue-green", _pool(1, upgrades="blue-green")),
    ("long shutdown", _pool(2, gracefulShutdownSeconds=120)),
    ("no shutdown", _pool(2, gracefulShutdownSeconds=0)),
    ("disk", _pool(1, diskGiB=500)),
    (
        "compute classes",
        lambda document: [
            entry(document, "pools", index).update(computeClass=f"class-{index}") for index in range(1, 4)
        ],
    ),
    ("versioning", lambda document: section(document, "checkpoints").update(recovery="versioning")),
    ("hierarchical", lambda document: section(document, "checkpoints").update(hierarchical=True)),
    ("checkpoints key", lambda document: section(document, "checkpoints").update(kmsKey=GCP_KEY)),
    ("retention", lambda document: section(document, "checkpoints").update(retainDays=60)),
    ("mirror", _whole(mirror=_MIRROR)),
    ("job metrics", _whole(fallback={"monitoring": {"jobs": "cloud"}})),
)

_AZURE: Final[Sequence[Feature]] = (
    ("unprotected", _whole(protected=False)),
    ("private", _cluster(access={"private": True})),
    ("public name", _cluster(access={"private": True, "publicName": True})),
    ("federated login", _cluster(login="workloadidentity")),
    ("window", _cluster(maintenance={"window": {"day": "sunday", "hours": 6, "everyWeeks": 2}})),
    ("patches", _cluster(upgrades={"cluster": "patch", "nodeOs": "NodeImage"})),
    ("no node updates", _cluster(upgrades={"nodeOs": "None"})),
    ("system nodes", _cluster(systemNodes={"vmSize": "Standard_D8ds_v5", "count": 3, "zones": [1, 2, 3], "diskGiB": 256})),
    ("disk key", _cluster(diskEncryptionSet=DISK_ENCRYPTION_SET)),
    ("logs", _cluster(logWorkspace=WORKSPACE)),
    ("registry", _cluster(registry=REGISTRY)),
    ("private endpoint", lambda document: section(document, "checkpoints").update(privateEndpoint={})),
    ("private names", lambda document: section(document, "checkpoints").update(privateEndpoint={"dnsZone": DNS_ZONE})),
    ("existing network", _whole(network={**EXISTING_AZURE_NETWORK})),
    ("routes", _whole(network={**EXISTING_AZURE_NETWORK, "outbound": "userDefinedRouting"})),
    ("ranges", _whole(network={"cidr": "10.64.0.0/16", "podsCidr": "10.80.0.0/13", "servicesCidr": "172.21.0.0/16"})),
    ("zones", _pool(1, zones=[1, 2])),
    ("disk", _pool(2, diskGiB=512)),
    ("retention", lambda document: section(document, "checkpoints").update(retainDays=90)),
    ("one place", lambda document: section(document, "checkpoints").update(redundancy="Standard_LRS")),
    ("mirror", _whole(mirror=_MIRROR)),
)  # fmt: skip

FEATURES: Final[Mapping[str, Sequence[Feature]]] = {"aws": _AWS, "gcp": _GCP, "azure-native": _AZURE}


def draw(cloud: str, *, seed: int, count: int) -> Iterator[Combination]:
    """Yield the repository's own stacks, each feature alone, and drawn combinations, `count` in all."""
    module = {"aws": aws_stacks, "gcp": gcp_stacks, "azure-native": azure_stacks}[cloud]
    found = 0
    for name in list(module.PLATFORMS)[:count]:
        yield _recorded(cloud, name, partial(_tracked, module, name))
        found += 1
    for features in _choices(FEATURES[cloud], random.Random(seed), count):
        if found == count:
            return
        compose = _composer(cloud, features)
        if compose is not None:
            yield _recorded(cloud, " + ".join(name for name, _ in features) or "none", compose)
            found += 1


def _tracked(module: ModuleType, name: str, preview: bool) -> Recording:
    return module.stack(name, preview=preview)


def _choices(features: Sequence[Feature], choice: random.Random, count: int) -> Iterator[Sequence[Feature]]:
    yield from ([feature] for feature in features)
    for _ in range(count * _TRIES):
        yield [each for each in features if choice.random() < _SHARE]


def _composer(cloud: str, features: Sequence[Feature]) -> Callable[[bool], Recording] | None:
    """Return what composes a stack with these features, None where they contradict each other."""

    def change(document: Document) -> None:
        for _, apply in features:
            apply(document)

    try:
        if cloud == "aws":
            aws = aws_platform(change)
            return lambda preview: aws_stacks.composed(aws, preview=preview)
        if cloud == "gcp":
            gcp = gcp_platform(change)
            return lambda preview: gcp_stacks.composed(gcp, preview=preview)
        azure = nap_platform(change) if len(features) % 2 else fixed_platform(change)
    except ConfigError:
        return None
    return lambda preview: azure_stacks.composed(azure, preview=preview)


def _recorded(cloud: str, name: str, compose: Callable[[bool], Recording]) -> Combination:
    known, unknown = (
        [
            replace(one, depends_on=frozenset(recording.everything_before(one)))
            for one in recording
            if one.custom and one.type.startswith(f"{cloud}:")
        ]
        for recording in map(compose, (False, True))
    )
    return Combination(name=name, known=known, unknown=unknown)


def plain(value: object) -> object:
    """Return a value of the SDK with the simulator's marker for what is unknown."""
    if isinstance(value, output.Unknown):
        return UNKNOWN
    if isinstance(value, dict):
        return {key: plain(one) for key, one in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [plain(one) for one in cast("list[object]", value)]
    return value
