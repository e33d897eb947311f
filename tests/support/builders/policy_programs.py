"""Programs as the policies see them: the repository's own stacks, which are compliant, and one that breaks every rule."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, cast

from pack import RULES
from pack import settings as settings_of
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL, TRAINING
from pulumi_holdfast.program.resources import Stack, StackResource, Value
from rule import Asked, Finding, Level, Rule
from rules.verdicts import RULE as VERDICTS_RULE
from server import evaluate
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.builders.stack_resources import resource
from tests.support.fakes.pulumi_engine import Recording

VERDICTS: Final = VERDICTS_RULE.name

Props = dict[str, "Value"]
Program = list[StackResource]

_STACKS: Final[Mapping[str, Callable[..., Recording]]] = {
    "local": local_stacks.stack,
    "aws-dev": aws_stacks.stack,
    "aws-prod": aws_stacks.stack,
    "azure-dev": azure_stacks.stack,
    "azure-prod": azure_stacks.stack,
    "gcp-dev": gcp_stacks.stack,
    "gcp-prod": gcp_stacks.stack,
}
STACKS: Final = tuple(_STACKS)


@cache
def recorded(name: str) -> tuple[StackResource, ...]:
    """One of the repository's stacks, cached; do not change it."""
    return as_resources(_STACKS[name](name), name)


def previewed(name: str) -> tuple[StackResource, ...]:
    """One of the repository's stacks as its first preview shows it: without the ids and outputs that only the update makes."""
    found = as_resources(_STACKS[name](name, preview=True), name)
    return tuple(replace(each, props=cast("Props", _shown(each.props))) for each in found)


def _shown(value: object) -> Value:
    if isinstance(value, Mapping):
        return {str(key): _shown(each) for key, each in cast("Mapping[object, object]", value).items()}
    if isinstance(value, list):
        return [_shown(each) for each in cast("list[object]", value)]
    return value if isinstance(value, str | int | float) or value is None else UNKNOWN


def as_resources(recording: Recording, name: str) -> tuple[StackResource, ...]:
    """The resources of a program, as the engine would send them for the stack with this name."""
    providers = {
        (each.type.rpartition(":")[2], each.name): _in_stack(each.urn, name)
        for each in recording
        if each.type.startswith("pulumi:providers:")
    }
    return tuple(
        StackResource(
            type=each.type,
            urn=_in_stack(each.urn, name),
            props=cast("Props", each.inputs),
            is_protected=each.protect,
            provider=providers.get((each.type.partition(":")[0], each.provider), ""),
            refers_to={
                key: tuple(_in_stack(urn, name) for urn in urns) for key, urns in each.made_of.items()
            },
        )
        for each in recording
    )


def _in_stack(urn: str, name: str) -> str:
    # Pulumi's mocks name every stack `local`.
    return urn.replace("urn:pulumi:local::", f"urn:pulumi:{name}::", 1)


def program(name: str) -> Program:
    """A copy of one of the repository's stacks, which a test may change."""
    return [replace(each, props=cast("Props", _copied(each.props))) for each in recorded(name)]


def _copied(value: Value) -> Value:
    # A sixth of the time of `deepcopy`, which looks for objects that are in two places.
    if isinstance(value, Mapping):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def findings(
    resources: Sequence[StackResource], rules: Iterable[Rule] = RULES, /, **settings: object
) -> dict[str, Sequence[Finding]]:
    """The findings of each rule that has any, in the profile `strict`. `settings` apply to every rule that has them."""
    asked = [
        Asked(
            rule=rule,
            settings=settings_of(rule, settings, settings),
            stops=(rule.strict or rule.level) is Level.MANDATORY,
        )
        for rule in rules
    ]
    return {name: found for name, found in evaluate(Stack(resources), asked).items() if found}


def reported(resources: Sequence[StackResource], **settings: object) -> dict[str, list[str]]:
    """The messages of each rule with findings, except the summary of verdicts."""
    rules = [rule for rule in RULES if rule.name != VERDICTS]
    found = findings(resources, rules, **settings)
    return {name: [each.message for each in listed] for name, listed in found.items()}


def stopping(resources: Sequence[StackResource], *, strict: bool = False) -> dict[str, list[str]]:
    """The messages that stop a run, by rule, in the profile `reachability` or `strict`."""
    rules = [
        rule for rule in RULES if ((rule.strict or rule.level) if strict else rule.level) is Level.MANDATORY
    ]
    stops = {
        name: [each.message for each in found if each.proven]
        for name, found in findings(resources, rules).items()
    }
    return {name: messages for name, messages in stops.items() if messages}


def of(resources: Sequence[StackResource], ending: str, name: str = "") -> StackResource:
    """The first resource whose type ends with `ending`, with this logical name if one is given."""
    return next(each for each in resources if each.type.endswith(ending) and name in {"", each.logical_name})


def every(resources: Sequence[StackResource], ending: str) -> list[StackResource]:
    """All resources whose type ends with `ending`."""
    return [each for each in resources if each.type.endswith(ending)]


def put(resource: StackResource, value: Value, *path: str | int) -> None:
    """Set the value at `path`, through mappings and lists."""
    at = cast("Props", resource.props)
    *steps, last = path
    for step in steps:
        at = cast("Props", at[cast("str", step)])
    at[cast("str", last)] = value


def without(resources: Program, *gone: StackResource) -> None:
    """Remove resources from a program."""
    urns = {each.urn for each in gone}
    resources[:] = [each for each in resources if each.urn not in urns]


def _node_pool(name: str, kind: str, machine: str) -> StackResource:
    """A pool of GPU machines on AWS, without taints, that Karpenter consolidates."""
    required: list[Value] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [kind]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": [machine]},
    ]
    node_class: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    template: Value = {
        "metadata": {"labels": {POOL: name}},
        "spec": {"requirements": required, "nodeClassRef": node_class},
    }
    props: dict[str, Value] = {"metadata": {"name": name}, "spec": {"template": template}}
    return resource(
        "kubernetes:karpenter.sh/v1:NodePool", name, _object("karpenter.sh/v1", "NodePool", props)
    )


def _object(version: str, kind: str, props: dict[str, Value]) -> dict[str, Value]:
    return {"apiVersion": version, "kind": kind, **props}


def _training(name: str, spec: Value) -> list[StackResource]:
    """A training namespace with its ladder."""
    labelled: Value = {"name": name, "labels": {TRAINING: "true"}}
    placed: Value = {"name": "ladder", "namespace": name}
    policy = _object("holdfast.dev/v1alpha1", "FallbackPolicy", {"metadata": placed, "spec": spec})
    return [
        resource("kubernetes:core/v1:Namespace", name, _object("v1", "Namespace", {"metadata": labelled})),
        resource("kubernetes:holdfast.dev/v1alpha1:FallbackPolicy", f"{name}-ladder", policy),
    ]


def _around() -> list[StackResource]:
    """A cluster, checkpoint storage and a chart that break rules."""
    manual: Value = {"mode": "Manual"}
    of_aks: Value = {"nodeClassRef": {"group": "karpenter.azure.com", "kind": "AKSNodeClass", "name": "nap"}}
    nap = _object(
        "karpenter.sh/v1", "NodePool", {"metadata": {"name": "nap"}, "spec": {"template": {"spec": of_aks}}}
    )
    aks: dict[str, Value] = {"nodeProvisioningProfile": manual}
    system: dict[str, Value] = {
        "mode": "System",
        "enableAutoScaling": True,
        "nodeTaints": ["CriticalAddonsOnly=true:NoSchedule"],
    }
    return [
        resource(
            "kubernetes:helm.sh/v3:Release",
            "karpenter",
            {"chart": "karpenter", "version": "^1.0", "values": {}},
        ),
        resource("aws:s3/bucket:Bucket", "checkpoints", {"forceDestroy": True}),
        resource("azure-native:containerservice:ManagedCluster", "aks", aks),
        resource("azure-native:containerservice:AgentPool", "system", system),
        resource("kubernetes:karpenter.sh/v1:NodePool", "nap", nap),
    ]


def violations() -> list[StackResource]:
    """A program that breaks every mandatory rule."""
    spot: Value = {"pool": "a100-spot", "maxFailures": 5, "procurementTimeout": "15m"}
    waiting: Value = {"pool": "a100-spot", "maxFailures": 5}
    huge: Value = {"name": "huge", "pods": 1, "cpu": "4000", "memory": "1Gi", "gpus": 1}
    narrow: dict[str, Value] = {
        "metadata": {"name": "q", "namespace": "wide"},
        "spec": {"hard": {"pods": "0"}},
    }
    return [
        _node_pool("a100-spot", "spot", "p4d.24xlarge"),
        _node_pool("a10g", "on-demand", "g5.12xlarge"),
        *_training("lost", {"tiers": [spot]}),
        *_training("wide", {"tiers": [spot, {"pool": "a10g"}], "shapes": [huge]}),
        *_training("waits", {"tiers": [waiting, {"pool": "a10g"}]}),
        resource("kubernetes:core/v1:ResourceQuota", "narrow", _object("v1", "ResourceQuota", narrow)),
        *_around(),
    ]
