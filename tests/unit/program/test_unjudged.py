"""What no rule judges is named: every kind of Kubernetes and of the operators, in a program with a sound ladder."""

import re
from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Final, cast

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ZONE
from pulumi_holdfast.program.fields import TABLES
from pulumi_holdfast.program.resources import StackResource, Value, at
from pulumi_holdfast.program.unjudged import of_kind, unjudged
from rule import PACK_DEFAULTS
from rules.not_judged import RULE
from rules.verdicts import verdicts
from tests.support.builders.policy_programs import STACKS, recorded
from tests.support.builders.program_jobs import declared_jobset, job_program, requesting
from tests.support.builders.stack_resources import resource
from tests.support.doc_pages import ROOT

_REGISTERED: Final = re.compile(r"__init__\(\s*'(kubernetes:[\w.]+/v\w+:\w+)'")
#: Kinds that rules read without a table of their fields.
_READ: Final = {"kubernetes:scheduling.k8s.io:PriorityClass"}


@cache
def kinds_of_kubernetes() -> Sequence[str]:
    """The types of Kubernetes' own objects, as the SDK registers them from Kubernetes' OpenAPI."""
    files = distribution("pulumi-kubernetes").files or ()
    sources = (Path(str(each.locate())) for each in files if each.suffix == ".py" and each.name[0].isupper())
    found = {name for each in sources for name in _REGISTERED.findall(each.read_text("utf-8"))}
    assert len(found) > 300, "the SDK registers them otherwise"
    return sorted(each for each in found if not re.search(r":(?:helm|yaml|kustomize)", each))


def kinds_of_operators() -> Iterator[tuple[str, bool]]:
    """The types of the operators' objects, as their definitions name them, and whether they have a namespace."""
    for file in sorted((ROOT / "components/pulumi_holdfast/kubernetes/charts").glob("*-crds/files/*.yaml")):
        for definition in yaml.load_all(file.read_text("utf-8"), yaml.CSafeLoader):
            spec = definition["spec"]
            stored = next(each["name"] for each in spec["versions"] if each["storage"])
            yield (
                f"kubernetes:{spec['group']}/{stored}:{spec['names']['kind']}",
                spec["scope"] == "Namespaced",
            )


def named(*beside: StackResource, job: StackResource | None = None) -> list[str]:
    """What is named in a program that is proved without what is beside it."""
    program = [*job_program(*([] if job is None else [job])), *beside]
    found = RULE.find(program, PACK_DEFAULTS)
    assert not any(each.proven for each in found)
    return [each.message for each in found]


def made(type_token: str, name: str = "other", where: str | None = "vision", **props: Value) -> StackResource:
    metadata: Value = {"name": name, **({} if where is None else {"namespace": where})}
    return resource(type_token, name, {"metadata": metadata, **props})


def test_every_kind_is_read_or_named_or_cannot_reach_a_job() -> None:
    unversioned = re.compile(r"/v\w+(?=:)")
    operators = dict(kinds_of_operators())
    silent = {
        kind
        for token in (*kinds_of_kubernetes(), *operators)
        for kind in (unversioned.sub("", token),)
        if kind not in TABLES.keys() | _READ
        and not named(made(token, where="vision" if operators.get(token, True) else None))
    }
    harmless = {
        kind
        for kind in silent
        if re.search(
            r":(?:rbac|certificates|storage|discovery|events|coordination|apiextensions|authentication|authorization|internal|storagemigration)\.",
            kind,
        )
    }
    assert {each.rpartition(":")[2].removesuffix("Patch").removesuffix("List") for each in silent - harmless} == {
        "ConfigMap", "ControllerRevision", "Endpoints", "Event", "IPAddress", "Ingress", "IngressClass", "Namespace",
        "PersistentVolume", "PersistentVolumeClaim", "PodTemplate", "RuntimeClass", "Secret", "Service", "ServiceAccount", "ServiceCIDR",
    }  # fmt: skip


def test_own_stacks_have_nothing_that_is_not_judged() -> None:
    assert not [str(each) for name in STACKS for each in unjudged(recorded(name))]


def test_kind_that_no_table_has_is_named() -> None:
    assert of_kind("kubernetes:example.org:Reaper")
    assert of_kind("nonsense")


SPOT: Value = {"nodeSelector": {"holdfast.dev/pool": "cpu-spot"}, "containers": [{"name": "a"}]}
OTHERS: Final[Mapping[str, tuple[StackResource, str]]] = {
    "a policy of Kyverno": (made("kubernetes:kyverno.io/v1:ClusterPolicy", where=None), "ClusterPolicy 'other', because it can refuse, change"),
    "a constraint of Gatekeeper": (made("kubernetes:constraints.gatekeeper.sh/v1:K8sAllowed", where=None), "K8sAllowed 'other'"),
    "a vertical autoscaler": (made("kubernetes:autoscaling.k8s.io/v1:VerticalPodAutoscaler"), "VerticalPodAutoscaler 'other'"),
    "an admission policy": (made("kubernetes:admissionregistration.k8s.io/v1:ValidatingAdmissionPolicy", where=None), "refuse or change pods"),
    "a webhook": (made("kubernetes:admissionregistration.k8s.io/v1:MutatingWebhookConfiguration", where=None), "MutatingWebhookConfiguration"),
    "a network policy": (made("kubernetes:networking.k8s.io/v1:NetworkPolicy"), "cut pods off"),
    "a Job": (made("kubernetes:batch/v1:Job"), "nothing moves them"),
    "a PyTorchJob": (made("kubernetes:kubeflow.org/v1:PyTorchJob"), "PyTorchJob 'other'"),
    "a queue of Kueue": (made("kubernetes:kueue.x-k8s.io/v1beta1:LocalQueue", "default"), "LocalQueue 'default'"),
    "a DaemonSet of another namespace": (made("kubernetes:apps/v1:DaemonSet", where="kube-system"), "take CPUs, memory and pods of each node"),
    "a Deployment on a pool": (made("kubernetes:apps/v1:Deployment", where="web", spec={"template": {"spec": SPOT}}), "Deployment 'other'"),
    "a patch of a NodePool": (made("kubernetes:karpenter.sh/v1:NodePoolPatch", where=None), "change an object that is judged without it"),
    "a NodePool of another version": (made("kubernetes:karpenter.sh/v1beta1:NodePool", where=None), "it is read as v1"),
    "a class of GKE": (made("kubernetes:cloud.google.com/v1:ComputeClass", where=None), "no rule reads its kind"),
    "a chart": (resource("kubernetes:helm.sh/v3:Release", "ray", {"chart": "oci://charts/kuberay-operator"}), "chart 'kuberay-operator' (Release 'ray')"),
    "a Fargate profile": (resource("aws:eks/fargateProfile:FargateProfile", "all", {}), "take pods off the pools"),
    "a cluster of Azure's classic provider": (resource("azure:containerservice/kubernetesCluster:KubernetesCluster", "aks", {}), "no rule reads this provider"),
    "a quota of EC2": (resource("aws:servicequotas/serviceQuota:ServiceQuota", "p", {}), "keep machines from being bought"),
}  # fmt: skip


@pytest.mark.parametrize(("beside", "why"), OTHERS.values(), ids=OTHERS.keys())
def test_what_can_reach_a_training_job_is_named(beside: StackResource, why: str) -> None:
    (found,) = named(beside)
    assert found.startswith("not judged: ")
    assert ", because it can " in found
    assert why in found


@pytest.mark.parametrize(
    "beside",
    [
        made("kubernetes:apps/v1:Deployment", where="web", spec={"replicas": 3}),
        made("kubernetes:networking.k8s.io/v1:NetworkPolicy", where="web"),
        made("kubernetes:kyverno.io/v1:Policy", where="web"),
        made("kubernetes:core/v1:ConfigMap"),
        resource("aws:s3/bucket:Bucket", "logs", {}),
    ],
    ids=lambda each: each.type,
)
def test_what_cannot_reach_a_training_job_is_not_named(beside: StackResource) -> None:
    assert named(beside) == []


def test_nothing_is_named_in_a_program_that_trains_nothing() -> None:
    assert not RULE.find([made("kubernetes:kyverno.io/v1:ClusterPolicy", where=None)], PACK_DEFAULTS)


@pytest.mark.parametrize(
    ("pod", "object_"),
    [
        ({"volumes": [{"name": "data", "configMap": {"name": "settings"}}]}, "ConfigMap 'settings'"),
        (
            {"volumes": [{"name": "data", "projected": {"sources": [{"secret": {"name": "token"}}]}}]},
            "Secret 'token'",
        ),
        ({"serviceAccountName": "trainer"}, "ServiceAccount 'trainer'"),
        (
            {"containers": [{**requesting(cpu="1"), "envFrom": [{"secretRef": {"name": "token"}}]}]},
            "Secret 'token'",
        ),
        ({"imagePullSecrets": [{"name": "registry"}]}, "Secret 'registry'"),
    ],
)
def test_object_that_pods_need_and_the_program_does_not_make_in_their_namespace_is_named(
    pod: Json, object_: str
) -> None:
    kind, name = object_.split(" ")
    (found,) = named(
        made(f"kubernetes:core/v1:{kind}", name.strip("'"), where="web"), job=declared_jobset(pod)
    )
    assert found.startswith(f"not judged: {object_}, because pods of JobSet 'train' need it")
    assert not named(made(f"kubernetes:core/v1:{kind}", name.strip("'")), job=declared_jobset(pod))


def test_object_that_pods_may_do_without_is_not_named() -> None:
    volume: Json = {"name": "data", "configMap": {"name": "settings", "optional": True}}
    assert not named(job=declared_jobset({"volumes": [volume]}))


def test_volume_claim_is_not_judged_unless_the_namespace_lists_it() -> None:
    job = declared_jobset({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})
    program = job_program(job)
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert "JobSet 'train': not judged" in str(found)
    assert "volume claim 'data'" in str(found)
    space = next(each for each in program if each.type.endswith(":Namespace"))
    metadata = cast("dict[str, Value]", space.props["metadata"])
    metadata["annotations"] = {"holdfast.dev/volume-claims": "models, data"}
    (found,) = verdicts(program, PACK_DEFAULTS)
    assert "JobSet 'train': proved" in str(found)


@pytest.mark.parametrize(
    ("zones", "verdict"),
    [
        (None, "JobSet 'train': proved"),
        (("local-a",), "JobSet 'train': proved"),
        (("local-b",), "the pods' volumes are in local-b, but its nodes are in local-a"),
    ],
)
def test_claim_whose_volume_the_program_makes_is_judged_by_its_zones(
    zones: tuple[str, ...] | None, verdict: str
) -> None:
    job = declared_jobset({"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]})
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones or ())}]}
    affinity: Json = {"required": {"nodeSelectorTerms": [term]}}
    volume = made(
        "kubernetes:core/v1:PersistentVolume",
        "vision.data",
        where=None,
        spec={} if zones is None else {"nodeAffinity": affinity},
    )
    claim = made("kubernetes:core/v1:PersistentVolumeClaim", "data", spec={"volumeName": "vision.data"})
    zoned = [_in_zone(each, "local-a") for each in job_program(job)]
    (found,) = verdicts([*zoned, claim, volume], PACK_DEFAULTS)
    assert verdict in str(found)


def _in_zone(made_: StackResource, zone: str) -> StackResource:
    """A NodePool with machines in one zone; anything else as it is."""
    if not made_.type.endswith(":NodePool"):
        return made_
    props = deepcopy(made_.props)
    template = cast("Json", at(props, "spec", "template", "spec"))
    cast("list[Json]", template["requirements"]).append({"key": ZONE, "operator": "In", "values": [zone]})
    return replace(made_, props=props)
