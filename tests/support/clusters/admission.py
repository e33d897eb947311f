"""A real API server with admission policies in force, and the policies and objects that tests put through it."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import cast

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import annotations_of
from pulumi_holdfast.kubernetes.admission.pod_admission import binding_spec, policy_name, policy_spec
from pulumi_holdfast.kubernetes.admission.rules import AdmissionRule, NodeSelection, TolerationRule
from pulumi_holdfast.ladder import taints
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, SPOT, TRAINING, TRAINING_VALUE
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders.training_jobs import container, pod
from tests.support.clusters.control_plane import running_control_plane
from tests.support.json_objects import obj, objects


def is_refused(client: KubeClient, manifest: Json, by: str) -> bool:
    """Whether the API server refuses an object, by a dry run, with an error that has the text `by`."""
    try:
        client.apply(manifest, field_manager="test", dry_run=True)
    except ApiError as error:
        return by in str(error)
    return False


def refusal(client: KubeClient, manifest: Json) -> str:
    """The error with which the API server refuses to create an object, by a dry run; empty if it admits it."""
    try:
        client.create(manifest, dry_run=True)
    except ApiError as error:
        return str(error)
    return ""


def tolerations_of(pod: Json) -> list[Json]:
    """The pod's tolerations, but for those the API server gives to every pod."""
    given = objects(obj(pod["spec"]).get("tolerations"))
    return [each for each in given if not str(each.get("key", "")).startswith("node.kubernetes.io/")]


def expected_tolerations(pod: Json, rules: Iterable[TolerationRule]) -> list[Json]:
    """The pod's own tolerations and, after them, those of the rules it asks by and does not tolerate yet."""
    expected = tolerations_of(pod)
    for rule in rules:
        if asks(pod, rule) and not any(tolerates(each, rule.taint) for each in expected):
            expected.append(rule.taint.as_toleration())
    return expected


def expected_annotations(pod: Json, rules: Iterable[TolerationRule]) -> Json:
    """The pod's own annotations, less those that the rules it asks by remove."""
    removed = {name for rule in rules if asks(pod, rule) for name in rule.removed_annotations}
    return {name: value for name, value in annotations_of(pod).items() if name not in removed}


def asks(pod: Json, rule: TolerationRule) -> bool:
    """Whether the pod asks for the rule's nodes."""
    spec = obj(pod["spec"])
    containers = [*objects(spec["containers"]), *objects(spec.get("initContainers"))]
    limits = [obj(obj(each.get("resources")).get("limits")) for each in containers]
    return any(names(spec, selection) for selection in rule.selections) or any(
        str(limit.get(resource, "0")) != "0" for limit in limits for resource in rule.resources
    )


def names(spec: Json, selection: NodeSelection) -> bool:
    """Whether a pod names a value of the selection, by selector or by required affinity."""
    if obj(spec.get("nodeSelector")).get(selection.key) in selection.values:
        return True
    return any(
        each["key"] == selection.key
        and each["operator"] == "In"
        and bool(set(selection.values) & set(cast("Sequence[str]", each["values"])))
        for each in required_expressions(spec)
    )


def required_expressions(spec: Json) -> Iterator[Json]:
    """Every expression on node labels in the required node affinity."""
    node = obj(obj(spec.get("affinity")).get("nodeAffinity"))
    required = obj(node.get("requiredDuringSchedulingIgnoredDuringExecution"))
    for term in objects(required.get("nodeSelectorTerms")):
        yield from objects(term.get("matchExpressions"))


def tolerates(toleration: Mapping[str, object], taint: Taint) -> bool:
    """Whether a toleration matches the taint, as Kubernetes documents it."""
    effect = toleration.get("effect", "")
    key = toleration.get("key", "")
    matches_value = toleration.get("operator") == "Exists" or toleration.get("value", "") == taint.value
    return effect in {"", taint.effect} and key in {"", taint.key} and matches_value


API_VERSION = "admissionregistration.k8s.io/v1"

#: Pods with this annotation are changed by another policy after ours: given a spot selector, or merely touched.
REWRITE = "example.com/rewrite"
GIVEN_SPOT = "given-spot"
TOUCHED = "touched"


def admission_objects(rules: Iterable[AdmissionRule]) -> list[Json]:
    """Each rule's policy and binding."""
    return [
        manifest
        for rule in rules
        for manifest in policy_and_binding(policy_name(rule), policy_spec(rule), binding_spec(rule))
    ]


def rewriting_objects() -> list[Json]:
    """Policies by which pods change after ours have seen them; policies run in the order of their names."""
    selector = (
        '[JSONPatch{op: "add", path: "/spec/nodeSelector", value: {"' + CAPACITY_TYPE + f'": "{SPOT}"}}}}]'
    )
    label = '[JSONPatch{op: "add", path: "/metadata/labels", value: {"touched": "yes"}}]'
    return [
        *rewriting_policy("zz-gives-spot", GIVEN_SPOT, selector),
        *rewriting_policy("zz-touches", TOUCHED, label),
    ]


def rewriting_policy(name: str, value: str, patch: str) -> list[Json]:
    """A policy that patches every pod whose annotation has this value."""
    condition = f'object.metadata.?annotations[?"{REWRITE}"].orValue("") == "{value}"'
    everywhere: Json = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["pods"],
    }
    spec: Json = {
        "failurePolicy": "Fail",
        "reinvocationPolicy": "Never",
        "matchConstraints": {"resourceRules": [everywhere]},
        "matchConditions": [{"name": "annotated", "expression": condition}],
        "mutations": [{"patchType": "JSONPatch", "jsonPatch": {"expression": patch}}],
    }
    return policy_and_binding(name, spec, {"policyName": name})


def policy_and_binding(name: str, policy: Json, binding: Json) -> list[Json]:
    """Both objects of one name."""
    return [
        {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, spec in (("MutatingAdmissionPolicy", policy), ("MutatingAdmissionPolicyBinding", binding))
    ]


TRAINING_NAMESPACE = "vision"
OTHER_NAMESPACE = "web"
SPOT_TOLERATION = taints.SPOT.as_toleration()
GPU_TOLERATION = taints.GPU.as_toleration()
SELECTS_SPOT: Json = {"nodeSelector": {CAPACITY_TYPE: SPOT}}


@contextmanager
def running_rules(
    folder: Path,
    rules: Iterable[AdmissionRule],
    in_force: Callable[[KubeClient], bool],
    beside: Iterable[Json] = (),
    *,
    prepare: Callable[[KubeClient], None] = lambda _: None,
) -> Generator[KubeClient]:
    """A cluster where these rules are in force, with one training namespace and one other namespace.

    `prepare` runs before any policy is created. It defines the kinds that policies name: an API server that reads a
    policy first caches that the kind is unknown, for 20 seconds and more.
    """
    with running_control_plane(folder) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        try:
            make_namespace(client, TRAINING_NAMESPACE, {TRAINING: TRAINING_VALUE})
            make_namespace(client, OTHER_NAMESPACE, {})
            prepare(client)
            for manifest in [*admission_objects(rules), *beside]:
                client.apply(manifest, field_manager="tests")
            wait_until_enforced(client, in_force)
            yield client
        finally:
            client.close()


def make_namespace(client: KubeClient, name: str, labels: Mapping[str, str]) -> None:
    """Make a namespace and wait for the service account without which the API refuses its pods."""
    manifest: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    client.apply(manifest, field_manager="tests")
    client.wait_for(
        "v1",
        "ServiceAccount",
        "default",
        namespace=name,
        timeout_seconds=30,
        condition=lambda found: found is not None,
        what=f"the default service account of {name}",
    )


def wait_until_enforced(client: KubeClient, in_force: Callable[[KubeClient], bool]) -> None:
    """Wait until the API server has taken up every policy, which it does a moment after it has accepted one."""
    deadline = time.monotonic() + 180
    while not in_force(client):
        assert time.monotonic() < deadline, "the API server has not taken up the policies within 180 s"
        time.sleep(0.1)


def in_force(client: KubeClient) -> bool:
    """Whether pods that meet every policy come out changed by each."""
    asking = pod(
        namespace=TRAINING_NAMESPACE,
        annotations={REWRITE: TOUCHED},
        containers=[container("1")],
        spec=SELECTS_SPOT,
    )
    touched = admitted(client, asking)
    given_spot = admitted(client, pod(namespace=OTHER_NAMESPACE, annotations={REWRITE: GIVEN_SPOT}))
    return (
        all(each in tolerations_of(touched) for each in (SPOT_TOLERATION, GPU_TOLERATION))
        and "labels" in obj(touched["metadata"])
        and "nodeSelector" in obj(given_spot["spec"])
    )


def admitted(client: KubeClient, manifest: Json) -> Json:
    """The pod as the API server would store it."""
    return client.apply(manifest, field_manager="tests", dry_run=True)


def admitted_tolerations(client: KubeClient, manifest: Json) -> list[Json]:
    """The tolerations that the pod would be stored with."""
    return tolerations_of(admitted(client, manifest))
