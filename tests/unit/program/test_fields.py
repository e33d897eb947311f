"""The tables of fields are complete, as published schemas say, and what they call judged is read."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias, cast

import pytest
import yaml

from pack import RULES, settings
from pulumi_holdfast.ladder.fallback_policy import POLICY_SCHEMA
from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.fields import TABLES, kubernetes, unversioned
from pulumi_holdfast.program.fields.azure import PROFILE
from pulumi_holdfast.program.fields.table import Fields, Node, Standing
from pulumi_holdfast.program.resources import Stack, StackResource, Value
from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.clouds.sdk import Property, PropertyType, ValueKind, argument_properties
from rule import PACK_DEFAULTS
from rules import program_jobs
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import STACKS, recorded
from tests.support.builders.program_jobs import (
    JOB_SET,
    RAY_JOB,
    TIERS,
    cpu_pool,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import ladder, resource
from tests.support.builders.training_jobs import pod_template, rayjob, worker_group
from tests.support.doc_pages import ROOT

#: The published fields below a field, by name; none below a scalar, or a map of any keys.
Tree: TypeAlias = Mapping[str, "Tree"]

_CRDS: Final = {
    "kubernetes:jobset.x-k8s.io:JobSet": "jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
    "kubernetes:ray.io:RayJob": "kuberay-crds/files/ray.io_rayjobs.yaml",
    "kubernetes:karpenter.sh:NodePool": "karpenter-crds/files/karpenter.sh_nodepools.yaml",
    "kubernetes:karpenter.k8s.aws:EC2NodeClass": "karpenter-crds/files/karpenter.k8s.aws_ec2nodeclasses.yaml",
    "kubernetes:karpenter.kwok.sh:KWOKNodeClass": "karpenter-kwok-crds/files/karpenter.kwok.sh_kwoknodeclasses.yaml",
}
#: AWS publishes no definition of Auto Mode's class, and the one of AKS is not in this repository.
_UNPUBLISHED: Final = {
    "kubernetes:eks.amazonaws.com:NodeClass",
    "kubernetes:karpenter.azure.com:AKSNodeClass",
}


def of_schema(schema: Mapping[str, object]) -> Tree:
    """The fields of an OpenAPI schema."""
    while schema.get("type") == "array":
        schema = cast("Mapping[str, object]", schema["items"])
    properties = cast("Mapping[str, Mapping[str, object]]", schema.get("properties", {}))
    return {name: of_schema(each) for name, each in properties.items()}


def of_sdk(properties: Mapping[str, Property], above: frozenset[object] = frozenset()) -> Tree:
    """The fields of a class of an SDK; of one that contains itself, once."""
    return {name: _below(each.types, above) for name, each in properties.items()}


def _below(types: tuple[PropertyType, ...], above: frozenset[object]) -> Tree:
    for each in types:
        if each.kind is ValueKind.LIST:
            return _below(each.item, above)
        if each.kind is ValueKind.OBJECT and each.shape is not None and each.shape not in above:
            return of_sdk(argument_properties(each.shape), above | {each.shape})
    return {}


@cache
def published(token: str) -> Tree:
    """The fields of a type, as its provider or its project publishes them."""
    if token == "kubernetes:holdfast.dev:FallbackPolicy":
        return {"apiVersion": {}, "kind": {}, "metadata": {}, "spec": of_schema(POLICY_SCHEMA)["spec"]}
    if token in _CRDS:
        text = (ROOT / "components/pulumi_holdfast/kubernetes/charts" / _CRDS[token]).read_text("utf-8")
        definition = yaml.load(text, yaml.CSafeLoader)
        stored = next(each for each in definition["spec"]["versions"] if each["storage"])
        found = of_schema(stored["schema"]["openAPIV3Schema"])
        return {name: each for name, each in found.items() if name != "status"}
    package = token.partition(":")[0]
    if package == "kubernetes":
        group, kind = token.split(":")[1:]
        token = f"kubernetes:{group}/v1:{kind}"
    return of_sdk(Schema.for_package(package).resource(token).inputs)


def undecided(tree: Tree, node: Node, path: str = "") -> Iterator[str]:
    """Yield the published fields of which the table says nothing."""
    for name, below in tree.items():
        child, where = node.child(name), f"{path}.{name}".lstrip(".")
        if child.below and below:
            yield from undecided(below, child, where)
        elif child.standing is None and not child.below:
            yield where


def dead(tree: Tree, node: Node, path: str = "") -> Iterator[str]:
    """Yield the fields of the table that are not published."""
    for name, child in node.below.items() if tree else ():
        where = f"{path}.{name}".lstrip(".")
        if "*" not in name and name not in tree:
            yield where
        elif child is not kubernetes.POD.root:
            yield from dead(tree.get(name, {}), child, where)


@pytest.mark.parametrize("token", sorted({*TABLES} - _UNPUBLISHED))
def test_table_decides_on_every_published_field_and_has_no_other(token: str) -> None:
    table, tree = TABLES[token], published(token)
    assert not [*undecided(tree, table.root)]
    assert not [*dead(tree, table.root)]


def test_pools_inside_an_aks_cluster_have_every_published_field() -> None:
    tree = published("azure-native:containerservice:ManagedCluster")["agentPoolProfiles"]
    assert not [*undecided(tree, PROFILE.root), *dead(tree, PROFILE.root)]


class Watched(Mapping[str, Value]):
    """An object that remembers the paths of the fields that code reads by name."""

    def __init__(self, value: Mapping[str, Value], seen: set[str], path: str = "") -> None:
        self._value, self._seen, self._path = value, seen, path

    def __getitem__(self, name: str) -> Value:
        where = f"{self._path}.{name}".lstrip(".")
        self._seen.add(where)
        return self._wrapped(self._value[name], where)

    def __iter__(self) -> Iterator[str]:
        return iter(self._value)

    def __len__(self) -> int:
        return len(self._value)

    def values(self) -> list[Value]:  # type: ignore[override]  # rules only iterate over it
        return [self._wrapped(each, "?") for each in self._value.values()]

    def _wrapped(self, value: Value, where: str) -> Value:
        if isinstance(value, Mapping):
            return Watched(cast("Mapping[str, Value]", value), self._seen, where)
        return [self._wrapped(each, where) for each in value] if isinstance(value, list) else value


_AMOUNTS: Final = {"requests": {"cpu": "1"}, "limits": {"cpu": "1"}}
_SECURITY: Final = {"capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"}}
_TERMS: Final = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}
_POD_SPEC: Final[Mapping[str, Value]] = {
    "affinity": {"podAffinity": _TERMS, "podAntiAffinity": _TERMS, "nodeAffinity": {}},
    "resources": _AMOUNTS,
    "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
    "volumes": [{"name": "data", "configMap": {}, "secret": {}}],
    **{
        kind: [{"name": "train", "resources": _AMOUNTS, "securityContext": _SECURITY}, {"name": "beside"}]
        for kind in ("containers", "initContainers")
    },
}
_POD: Final[Value] = {"metadata": {}, "spec": _POD_SPEC}


def everything() -> list[StackResource]:
    """Resources that the other programs lack: a job of each kind, and what is read beside jobs and pools."""
    placed: Value = {
        "name": "train",
        "namespace": "vision",
        "annotations": {},
        "labels": {"holdfast.dev/fallback": "true"},
    }
    job: Value = {"template": _POD}
    child: Value = {"metadata": {"annotations": {}}, "spec": job}
    group: Value = {"groupName": "workers", "replicas": 1, "template": _POD}
    ray: Value = {"headGroupSpec": {"template": _POD}, "workerGroupSpecs": [group]}
    node_class: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    auto: Value = {"group": "eks.amazonaws.com", "kind": "NodeClass", "name": "gpus"}
    reserved: Value = {"cpu": "1", "memory": "1Gi"}
    hard = ("count/pods", "cpu", "memory", "limits.cpu", "limits.memory", "services", "count/services", "persistentvolumeclaims", "count/persistentvolumeclaims", "count/jobs.batch", "count/jobsets.jobset.x-k8s.io", "count/rayjobs.ray.io", "count/rayclusters.ray.io")  # fmt: skip
    config: Value = {"machineType": "n2-standard-8"}
    config |= {key: {} for key in ("reservationAffinity", "taintConfig", "bootDisk", "confidentialNodes")}
    made: Mapping[str, Mapping[str, Value]] = {
        "kubernetes:core/v1:Namespace": {"metadata": {"name": "vision", "labels": {"holdfast.dev/training": "true"}}},
        "kubernetes:core/v1:ResourceQuota": {"metadata": placed, "spec": {"hard": dict.fromkeys(hard, "9")}},
        "kubernetes:core/v1:LimitRange": {"metadata": placed, "spec": {"limits": [{"type": "Container"}]}},
        "kubernetes:jobset.x-k8s.io/v1alpha2:JobSet": {"metadata": placed, "spec": {"network": {}, "replicatedJobs": [{"name": "w", "template": child, "dependsOn": [{}]}]}},
        "kubernetes:ray.io/v1:RayJob": {"metadata": placed, "spec": {"rayClusterSpec": ray, "deletionStrategy": {"onFailure": {}, "onSuccess": {}}}},
        "kubernetes:karpenter.k8s.aws/v1:EC2NodeClass": {"metadata": {"name": "default"}, "spec": {"kubelet": {"kubeReserved": reserved, "systemReserved": reserved}}},
        "kubernetes:eks.amazonaws.com/v1:NodeClass": {"metadata": {"name": "gpus"}, "spec": {}},
        "aws:eks/cluster:Cluster": {"name": "c", "computeConfig": {"enabled": True}},
        "aws:eks/nodeGroup:NodeGroup": {"clusterName": "c"},
        "gcp:container/nodePool:NodePool": {"cluster": "east", "nodeConfig": config, "queuedProvisioning": {}, "networkConfig": {"enablePrivateNodes": True}},
        "gcp:container/cluster:Cluster": {"name": "east", "confidentialNodes": {}},
        "azure-native:containerservice:ManagedCluster": {"resourceName": "aks"},
        "azure-native:containerservice:AgentPool": {"agentPoolName": "p", "resourceName": "aks", "gpuProfile": {}, "powerState": {}, "virtualMachinesProfile": {"scale": {"manual": [{}]}}},
    }  # fmt: skip
    others = [cpu_pool(each["name"], "on-demand", nodeClassRef=each) for each in (node_class, auto)]
    return [
        ladder(TIERS),
        *others,
        *(resource(token, "made", props) for token, props in made.items()),
        resource(
            "azure-native:containerservice:AgentPool", "fixed", {"agentPoolName": "f", "resourceName": "aks"}
        ),
    ]


def judged(node: Node, path: str = "") -> Iterator[str]:
    """Yield the fields that a table calls judged."""
    for name, child in node.below.items():
        where = f"{path}.{name}".lstrip(".")
        if child.standing is Standing.JUDGED and "*" not in name:
            yield where
        yield from judged(child, where)


def test_rules_read_every_field_that_is_called_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: object) -> tuple[str, ...]:
        return ()

    # The tables themselves look at every field.
    monkeypatch.setattr(Fields, "unread", nothing)
    seen: dict[str, set[str]] = {}

    def remembering(each: StackResource) -> StackResource:
        of_type = seen.setdefault(unversioned(each.type), set())
        referring = cast("Mapping[str, tuple[str, ...]]", Watched(each.refers_to, of_type))
        return replace(each, props=Watched(each.props, of_type), refers_to=referring)

    for program in (*map(recorded, STACKS), everything()):
        watched = Stack(map(remembering, program))
        for rule in RULES:
            rule.find(watched, settings(rule, None))
    unread = {
        token: [each for each in judged(table.root) if each not in seen.get(token, ())]
        for token, table in TABLES.items()
    }
    assert {token: paths for token, paths in unread.items() if paths} == {}


def spec(**fields: Value) -> Value:
    return {"spec": fields}


@pytest.mark.parametrize(
    ("declared", "reasons"),
    [
        (spec(tags={"team": "a"}, detailedMonitoring=False), ()),
        (spec(amiSelectorTerms=[{"alias": "al2023@v20250701"}]), ()),
        (spec(amiSelectorTerms=[{"alias": "windows2022@latest"}]), ("the field `spec.amiSelectorTerms.alias` of it is not judged",)),
        (spec(context="x", cpuOptions={"a": 1}), ("the fields `spec.context`, `spec.cpuOptions` of it are not judged",)),
        (spec(newField=True), ("the field `spec.newField` of it is not judged",)),
        (spec(newField=UNKNOWN), ("the field `spec.newField` of it is not known yet",)),
        (spec(newField=None, context="", kubelet={}), ()),
        (spec(newField=1.0, __defaults=["newField"]), ()),
        (spec(metadataOptions={"httpEndpoint": UNKNOWN}), ("the field `spec.metadataOptions.httpEndpoint` of it is not known yet",)),
        (spec(metadataOptions=UNKNOWN, tags=UNKNOWN), ("the field `spec.metadataOptions` of it is not known yet",)),
    ],
    ids=["harmless", "value", "other value", "unjudged", "new", "unknown", "unset", "default", "unknown value", "unknown object"],
)  # fmt: skip
def test_field_that_no_rule_judges_is_named(declared: Value, reasons: tuple[str, ...]) -> None:
    table = TABLES["kubernetes:karpenter.k8s.aws:EC2NodeClass"]
    assert table.unread(declared, "it") == reasons


def test_table_that_has_a_field_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'weight' twice"):
        Fields.of(judged="spec(weight)", harmless={"": "spec(weight)"})


def unjudged(node: Node, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the fields that a table says no rule judges, those included of which it takes only some values."""
    for name, child in node.below.items():
        where = (*path, name)
        if "*" not in name and (child.standing is Standing.UNJUDGED or child.values):
            yield where
        if "*" not in name:
            yield from unjudged(child, where)


def set_at(value: Value, path: Sequence[str]) -> None:
    """Set a field to a value that no table takes, through the first item of each list."""
    while isinstance(value, list):
        value = value[0]
    found, (first, *rest) = cast("dict[str, Value]", value), path
    if rest:
        inner = found.get(first)
        if not isinstance(inner, dict | list) or not inner:
            found[first] = {}
        set_at(found[first], rest)
    else:
        found[first] = "strange"


def sound(token: str) -> list[StackResource]:
    """A program that is proved, with a resource of this type."""
    placed: Value = {"name": "other", "namespace": "vision"}
    workers = worker_group(pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="3")], "initContainers": [requesting(cpu="1")]}))  # fmt: skip
    head = pod_template({}, spec={"containers": [requesting(cpu="1")]})
    jobs = {
        JOB_SET: declared_jobset({"initContainers": [requesting(cpu="1")]}),
        RAY_JOB: declared(RAY_JOB, rayjob(workers, head=head, spec={"backoffLimit": 5})),
        "kubernetes:core/v1:ResourceQuota": resource("kubernetes:core/v1:ResourceQuota", "q", {"metadata": placed, "spec": {"hard": {"pods": "9"}}}),
        "kubernetes:core/v1:LimitRange": resource("kubernetes:core/v1:LimitRange", "l", {"metadata": placed, "spec": {"limits": [{"type": "Pod"}]}}),
    }  # fmt: skip
    made = next((each for type_token, each in jobs.items() if unversioned(type_token) == token), None)
    group, _, kind = token.removeprefix("kubernetes:").partition(":")
    program = job_program(declared_jobset({}) if made is None else made)
    if group.startswith(("karpenter.k8s.aws", "karpenter.kwok", "eks.", "karpenter.azure")):
        program = [each for each in program if not each.type.endswith(":NodePool")]
        reference: Value = {"group": group, "kind": kind, "name": "default"}
        machine: Value = [{"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["spot"]}]
        program += [cpu_pool("cpu-spot", "spot", nodeClassRef=reference, requirements=machine)]
        program += [cpu_pool("cpu", "on-demand", nodeClassRef=reference)]
        program += [
            resource(
                f"kubernetes:{group}/v1:{kind}", "default", {"metadata": {"name": "default"}, "spec": {}}
            )
        ]
    return program


_FIELDS: Final = [
    (token, path)
    for token, table in TABLES.items()
    if token.startswith("kubernetes:")
    for path in unjudged(table.root)
]


@pytest.mark.parametrize("token", sorted({token for token, _ in _FIELDS}))
def test_field_that_no_rule_judges_is_named_in_the_verdict_on_the_namespace(
    token: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nothing(_: StackResource) -> tuple[str, ...]:
        return ()

    # The value here is a text, whatever type the definition gives the field.
    monkeypatch.setattr(program_jobs, "refusals", nothing)
    silent: list[str] = []
    for path in (path for each, path in _FIELDS if each == token):
        program = sound(token)
        for each in program:
            if unversioned(each.type) == token:
                set_at(cast("dict[str, Value]", each.props), path)
        (found,) = verdicts(program, PACK_DEFAULTS)
        if f"`{'.'.join(path)}`" not in str(found) or found.word is Word.PROVED:
            silent.append(".".join(path))
    assert not silent
