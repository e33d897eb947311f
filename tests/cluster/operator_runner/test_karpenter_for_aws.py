"""AWS's Karpenter chart runs here with Karpenter's own core, on machines that are simulated."""

import pytest

from pulumi_holdfast.aws.pools import Ec2NodeClassArgs, ec2_node_class
from pulumi_holdfast.controller.kube.objects import labels_of, name_of
from pulumi_holdfast.kubernetes.karpenter_pool import node_pool_spec
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, POOL, RESERVATION_ID, CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.taints import RESERVED as RESERVED_TAINT
from tests.support.builders.karpenter_objects import class_object, pool_object
from tests.support.clusters.operators import (
    NAMESPACE,
    NODE_CLASS,
    STOCK,
    KarpenterCluster,
    condition_of,
    is_ready,
    job_pod,
    node_class,
    node_pool,
)

pytestmark = pytest.mark.cluster


def is_running(pod: Json) -> bool:
    return mapping(pod.get("status")).get("phase") == "Running"


def finalizers(obj: "Json | None") -> list[str]:
    return [str(each) for each in sequence(mapping((obj or {}).get("metadata")).get("finalizers"))]


def stock(karpenter: KarpenterCluster, name: str, left: str | None) -> None:
    patch: Json = {"metadata": {"annotations": {STOCK: left}}}
    karpenter.client.merge_patch(NODE_CLASS, "EC2NodeClass", name, patch)


def pool(
    karpenter: KarpenterCluster, name: str, *types: str, capacity: str = "spot", weight: int = 1
) -> None:
    """A pool, ready to buy."""
    karpenter.apply(node_class(name), node_pool(name, *types, capacity=capacity, weight=weight))
    karpenter.client.wait_for(
        "karpenter.sh/v1", "NodePool", name, timeout_seconds=180, condition=is_ready, what="the pool is ready"
    )


def test_two_controllers_run_in_two_zones_and_one_leads(karpenter: KarpenterCluster) -> None:
    pods = karpenter.charts.pods(NAMESPACE)
    assert len({str(mapping(pod["spec"])["nodeName"]) for pod in pods}) == 2
    assert all(is_ready(pod) for pod in pods)
    assert karpenter.charts.leader(NAMESPACE, "karpenter-leader-election")


def test_a_node_class_becomes_ready_and_has_a_finalizer(karpenter: KarpenterCluster) -> None:
    karpenter.apply(node_class("made"))
    made = karpenter.wait_for_class("made", is_ready, "the class is ready")
    assert finalizers(made) == ["karpenter.k8s.aws/termination"]
    # The garbage collector, which ends deletions in the foreground, looks for new kinds every 30 s only.
    karpenter.client.delete(NODE_CLASS, "EC2NodeClass", "made", propagation="Background")
    gone = karpenter.wait_for_class("made", lambda obj: obj is None, "the class goes")
    assert gone is None


def test_a_pod_that_selects_spot_gets_a_spot_machine_as_aws_labels_it(karpenter: KarpenterCluster) -> None:
    pool(karpenter, "training", "c7i.xlarge", "c7a.xlarge")
    selector: Json = {"karpenter.sh/capacity-type": "spot", "team": "training"}
    karpenter.apply(job_pod("trains", selector))
    pod = karpenter.wait_for_pod("trains", is_running, "the pod runs")
    node = karpenter.client.get("v1", "Node", str(mapping(pod["spec"])["nodeName"]))
    labels = labels_of(node or {})
    assert labels["karpenter.sh/capacity-type"] == "spot"
    assert labels["karpenter.k8s.aws/instance-size"] == "xlarge"
    assert str(labels["topology.kubernetes.io/zone"]).startswith("us-east-1")


def test_a_node_class_waits_for_its_machines_and_names_them(karpenter: KarpenterCluster) -> None:
    pool(karpenter, "leaving", "m7i.xlarge")
    karpenter.apply(job_pod("stays", {"team": "leaving"}))
    karpenter.wait_for_pod("stays", is_running, "the pod runs")
    (machine,) = karpenter.machines("leaving")
    karpenter.client.delete(NODE_CLASS, "EC2NodeClass", "leaving", propagation="Background")
    told = karpenter.wait_for_event("WaitingOnNodeClaimTermination", "leaving")
    assert name_of(machine) in str(told["message"])
    held = karpenter.client.get(NODE_CLASS, "EC2NodeClass", "leaving")
    assert finalizers(held) == ["karpenter.k8s.aws/termination"]
    karpenter.client.delete("karpenter.sh/v1", "NodePool", "leaving")
    gone = karpenter.wait_for_class("leaving", lambda obj: obj is None, "the class goes")
    assert gone is None
    assert karpenter.machines("leaving") == []


def test_pods_of_a_sold_out_pool_go_to_the_next_pool(karpenter: KarpenterCluster) -> None:
    pool(karpenter, "scarce", "c7i.2xlarge", weight=50)
    pool(karpenter, "plenty", "m7i.2xlarge", capacity="on-demand")
    stock(karpenter, "scarce", "0")
    either: Json = {"cpu": "6"}
    wanted = job_pod("wants-either", {})
    container = mapping(sequence(mapping(wanted["spec"])["containers"])[0])
    spec: Json = {**mapping(wanted["spec"]), "containers": [{**container, "resources": {"requests": either}}]}
    karpenter.apply({**wanted, "spec": spec})
    told = karpenter.wait_for_event("InsufficientCapacityError", "scarce")
    assert "out of stock" in str(told["message"])
    karpenter.wait_for_pod("wants-either", is_running, "the pod runs")
    assert len(karpenter.machines("plenty")) == 1
    assert karpenter.machines("scarce") == []


def test_a_pool_provisions_again_when_capacity_returns(karpenter: KarpenterCluster) -> None:
    pool(karpenter, "emptied", "r7i.xlarge")
    stock(karpenter, "emptied", "0")
    karpenter.apply(job_pod("waits", {"team": "emptied"}))
    karpenter.wait_for_event("InsufficientCapacityError", "emptied")
    stock(karpenter, "emptied", None)
    pod = karpenter.wait_for_pod("waits", is_running, "the pod runs")
    assert mapping(pod["spec"])["nodeName"]


def test_another_image_makes_machines_drift(karpenter: KarpenterCluster) -> None:
    pool(karpenter, "ageing", "r7a.xlarge")
    karpenter.apply(job_pod("ages", {"team": "ageing"}))
    karpenter.wait_for_pod("ages", is_running, "the pod runs")
    karpenter.apply(node_class("ageing", image="al2023@v20260901"))
    (machine,) = karpenter.wait_for_machines(
        "ageing",
        lambda found: [condition_of(each, "Drifted").get("status") for each in found] == ["True"],
        "its machine has drifted",
    )
    assert condition_of(machine, "Drifted")["reason"] == "AMIDrift"
    assert is_running(karpenter.wait_for_pod("ages", is_running, "the pod"))


def reserved_pool(karpenter: KarpenterCluster, name: str, reservation: str) -> None:
    """A pool of a reservation, as the components write it."""
    pool = Pool(name=name, capacity=CapacityType.RESERVED, has_gpus=False, max_nodes=2)
    machine_class = ec2_node_class(
        Ec2NodeClassArgs(
            node_role="holdfast-test-node",
            subnet_ids=["subnet-0123456789abcdef0"],
            security_group_ids=["sg-0123456789abcdef0"],
            ami_alias="al2023@v20260801",
            volume_gib=100,
            reservation=reservation,
            block_storage=True,
        )
    )
    machines = [machine_catalogue("aws")["c7i.xlarge"]]
    spec = node_pool_spec(
        pool, machines, machine_class, name, 50, zones=["us-east-1a"], reservation=reservation
    )
    karpenter.apply(class_object(machine_class, name), pool_object(spec, name))
    karpenter.client.wait_for(
        "karpenter.sh/v1", "NodePool", name, timeout_seconds=180, condition=is_ready, what="the pool is ready"
    )


def reserved_pod(name: str, pool: str) -> Json:
    """A pod as admission leaves it, which takes a whole machine."""
    pod = job_pod(name, {POOL: pool})
    container: Json = {"name": "train", "image": "train", "resources": {"requests": {"cpu": "3"}}}
    tolerations = [RESERVED_TAINT.as_toleration()]
    return {**pod, "spec": {**mapping(pod["spec"]), "containers": [container], "tolerations": tolerations}}


def bought(claim: Json) -> tuple[str, str]:
    """How a machine was bought: its capacity type and its reservation."""
    labels = labels_of(claim)
    return str(labels.get(CAPACITY_TYPE)), str(labels.get(RESERVATION_ID))


def refused_by_karpenter(karpenter: KarpenterCluster, prefix: str) -> None:
    """Wait until Karpenter, and not only the scheduler, says that it has no machine for a pod."""

    def refused(event: Json) -> bool:
        about, source = mapping(event.get("involvedObject")), mapping(event.get("source"))
        is_karpenter = "karpenter" in (source.get("component"), event.get("reportingComponent"))
        return (
            is_karpenter
            and event.get("reason") == "FailedScheduling"
            and str(about["name"]).startswith(prefix)
        )

    karpenter.client.wait_list(
        "v1",
        "Event",
        timeout_seconds=180,
        condition=lambda events: any(map(refused, events)),
        what=f"Karpenter refuses {prefix}",
    )


def test_a_reserved_pool_gets_the_machines_of_its_reservation_and_no_more(
    karpenter: KarpenterCluster, block: str
) -> None:
    reserved_pool(karpenter, "block", block)
    karpenter.apply(*(reserved_pod(f"gang-{number}", "block") for number in range(3)))
    karpenter.wait_for_machines(
        "block",
        lambda found: [bought(claim) for claim in found] == [("reserved", block)] * 2,
        "two machines of this reservation, as Karpenter labels them",
    )
    karpenter.client.wait_list(
        "v1",
        "Pod",
        namespace="default",
        timeout_seconds=180,
        condition=lambda pods: sum(map(is_running, pods)) >= 2,
        what="two of the gang run: the driver's agent has removed the taint of their nodes",
    )
    refused_by_karpenter(karpenter, "gang-")
    assert len(karpenter.machines("block")) == 2


def test_a_pool_of_an_unknown_reservation_gets_no_machine(karpenter: KarpenterCluster) -> None:
    reserved_pool(karpenter, "unknown", "cr-0fedcba9876543210")
    karpenter.apply(reserved_pod("without-reservation", "unknown"))
    refused_by_karpenter(karpenter, "without-reservation")
    assert not karpenter.machines("unknown")
