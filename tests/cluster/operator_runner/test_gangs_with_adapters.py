"""Gangs with fabric adapters stay in one zone: the real scheduler, and Karpenter's core on simulated machines."""

import pytest

from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.kubernetes.admission.rules import eks_rules
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import EFA_NODE, EFA_RESOURCE, TRAINING, TRAINING_VALUE, ZONE
from tests.support.clusters.admission import admission_objects, make_namespace, wait_until_enforced
from tests.support.clusters.operators import KarpenterCluster, is_ready, node_class, node_pool
from tests.support.json_objects import obj

pytestmark = pytest.mark.cluster

NAMESPACE = "vision"
#: Keeps pods of other tests away from the machines, which have room.
TAINT: Json = {"key": "adapters", "value": "true", "effect": "NoSchedule"}


def worker(name: str, *, gang: Json, spec: Json | None = None, efa: str = "4") -> Json:
    """A pod that fills a machine of its own, with `efa` adapters."""
    resources: Json = {"requests": {"cpu": "48"}, "limits": {EFA_RESOURCE: efa}}
    container: Json = {"name": "train", "image": "train", "resources": resources}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": NAMESPACE, "labels": gang},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "tolerations": [{"key": TAINT["key"], "operator": "Exists"}],
            "containers": [container],
            **(spec or {}),
        },
    }


def gang_of(name: str, attempt: str = "0") -> Json:
    return {"jobset.sigs.k8s.io/jobset-name": name, "jobset.sigs.k8s.io/restart-attempt": attempt}


def terms_of(pod: Json) -> list[Json]:
    affinity = mapping(mapping(mapping(pod["spec"]).get("affinity")).get("podAffinity"))
    return [
        mapping(each) for each in sequence(affinity.get("requiredDuringSchedulingIgnoredDuringExecution"))
    ]


@pytest.fixture(scope="module", autouse=True)
def adapters(karpenter: KarpenterCluster) -> None:
    """A namespace with admission, and a pool of machines with adapters."""
    make_namespace(karpenter.client, NAMESPACE, {TRAINING: TRAINING_VALUE})
    karpenter.apply(*admission_objects(eks_rules(efa=True)))
    probe = worker("probe", gang=gang_of("probe"))
    wait_until_enforced(
        karpenter.client,
        lambda client: bool(terms_of(client.apply(probe, field_manager="tests", dry_run=True))),
    )
    pool = node_pool("adapters", "p4d.24xlarge", capacity="on-demand", taints=[TAINT])
    karpenter.apply(node_class("adapters"), pool)
    karpenter.client.wait_for(
        "karpenter.sh/v1",
        "NodePool",
        "adapters",
        timeout_seconds=180,
        condition=is_ready,
        what="the pool is ready",
    )


def admitted(karpenter: KarpenterCluster, pod: Json) -> Json:
    return karpenter.client.apply(pod, field_manager="tests", dry_run=True)


@pytest.mark.parametrize(
    "affinity",
    [
        {},
        {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        {
            "podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"team": "a"}}}
                ]
            }
        },
    ],
    ids=["empty", "for nodes", "preferred", "for hosts"],
)
def test_a_pod_with_adapters_keeps_its_affinity_and_gets_one_for_the_zone(
    karpenter: KarpenterCluster, affinity: Json
) -> None:
    pod = admitted(karpenter, worker("one", gang=gang_of("gang", "2"), spec={"affinity": affinity}))
    *others, last = terms_of(pod)
    assert last["topologyKey"] == ZONE
    keys = {
        str(each["key"]): each["values"]
        for each in map(obj, sequence(obj(last["labelSelector"])["matchExpressions"]))
    }
    assert keys == {**{key: [value] for key, value in gang_of("gang", "2").items()}, EFA_NODE: ["true"]}
    assert len(others) == len(terms_of({"spec": {"affinity": affinity}}))
    assert labels_of(pod)[EFA_NODE] == "true"


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (worker("none", gang=gang_of("gang"), efa="0"), "without an adapter any zone will do"),
        (worker("alone", gang={}), "a pod that belongs to no job has no others to reach"),
    ],
    ids=["no adapter", "no job"],
)
def test_other_pods_may_use_every_zone(karpenter: KarpenterCluster, pod: Json, reason: str) -> None:
    assert not terms_of(admitted(karpenter, pod)), reason


def test_an_affinity_for_zones_is_the_authors(karpenter: KarpenterCluster) -> None:
    own: Json = {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"team": "a"}}}
    spec: Json = {"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [own]}}}
    (term,) = terms_of(admitted(karpenter, worker("own", gang=gang_of("gang"), spec=spec)))
    assert obj(term["labelSelector"])["matchLabels"] == {"team": "a"}, "a second term could contradict it"


def test_karpenter_buys_the_machines_of_a_gang_in_one_zone(karpenter: KarpenterCluster) -> None:
    zones = sorted(
        str(labels_of(node).get(ZONE))
        for node in karpenter.client.list("v1", "Node")
        if name_of(node).startswith("system-")
    )
    last = zones[-1]
    gang = gang_of("spread")
    # A helper without adapters, and one worker that is bound to a zone: the others follow the worker.
    helper = worker("helper", gang=gang, efa="0", spec={"nodeSelector": {ZONE: zones[0]}})
    first = worker("spread-0", gang=gang, spec={"nodeSelector": {ZONE: last}})

    def placed(pods: list[Json], count: int) -> bool:
        workers = [pod for pod in pods if name_of(pod).startswith("spread-")]
        return len(workers) == count and all(mapping(pod["spec"]).get("nodeName") for pod in workers)

    def wait_placed(count: int) -> list[Json]:
        return karpenter.client.wait_list(
            "v1",
            "Pod",
            namespace=NAMESPACE,
            timeout_seconds=180,
            condition=lambda pods: placed(pods, count),
            what=f"{count} workers are placed",
        )

    # Karpenter plans pods of one second in the order of their uids: the bound worker would be the last of them at times.
    karpenter.apply(helper, first)
    wait_placed(1)
    karpenter.apply(*(worker(f"spread-{index}", gang=gang) for index in (1, 2)))
    pods = wait_placed(3)
    nodes = {name_of(node): node for node in karpenter.client.list("v1", "Node")}
    used = {
        str(labels_of(nodes[str(mapping(pod["spec"])["nodeName"])])[ZONE])
        for pod in pods
        if name_of(pod).startswith("spread-")
    }
    assert used == {last}
