"""Instance groups and scale sets buy and delete machines; only GKE creates preempted machines again."""

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.machines import Instance, MachineState
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import InstanceGroups, NodeGroups, ScaleSets
from pulumi_holdfast.rehearsal.cluster_autoscaler.scale_up import Purchase
from tests.support.builders.aks_objects import agent_pool, aks_cluster
from tests.support.builders.autoscaling_objects import needs, node_pool


@dataclass(frozen=True, kw_only=True)
class Case:
    """A cloud with an autoscaled pool of one machine, `cpu`, and a pool of fixed size, `system`."""

    cloud: CloudState
    groups: NodeGroups
    zone: str
    pool: CloudObject
    fixed: CloudObject

    def buy(self) -> Instance | None:
        (done,) = self.groups.buy([Purchase(pool=self.pool.id, zone=self.zone, pods=(needs(),))])
        return done.instance

    def bought(self) -> Instance:
        instance = self.buy()
        assert instance is not None
        return instance

    def machines(self, pool: CloudObject | None = None) -> list[Instance]:
        wanted = (pool or self.pool).id
        (group,) = [group for group in self.groups.groups() if group.pool.id == wanted]
        return list(group.instances)

    def sell_out(self, pool: str = "cpu") -> None:
        with self.cloud.changing() as inventory:
            self.groups.register.sell_out(pool, inventory)

    def restock(self, pool: str = "cpu") -> None:
        with self.cloud.changing() as inventory:
            self.groups.register.restock(pool, inventory)

    def preempt(self, instance: Instance, pool: CloudObject | None = None) -> None:
        with self.cloud.changing() as inventory:
            self.groups.register.record(
                pool or self.pool, replace(instance, state=MachineState.TERMINATED), inventory
            )


@pytest.fixture
def gke(tmp_path: Path) -> Case:
    pool = node_pool(autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 4})
    fixed = node_pool("system", autoscaling=None, nodeCount=1)
    cloud = CloudState(tmp_path / "gcp.json")
    with cloud.changing() as inventory:
        for one in (pool, fixed):
            inventory.put(one)
    return Case(cloud=cloud, groups=InstanceGroups(cloud), zone="europe-west4-a", pool=pool, fixed=fixed)


@pytest.fixture
def aks(tmp_path: Path) -> Case:
    pool = agent_pool(count=1, minCount=1, maxCount=4)
    fixed = agent_pool("system", enableAutoScaling=False, count=1, digest="f1")
    cloud = CloudState(tmp_path / "azure-native.json")
    with cloud.changing() as inventory:
        for one in (aks_cluster(), pool, fixed):
            inventory.put(one)
    return Case(cloud=cloud, groups=ScaleSets(cloud), zone="eastus2-1", pool=pool, fixed=fixed)


@pytest.fixture(params=["gke", "aks"])
def case(request: pytest.FixtureRequest) -> Case:
    return request.getfixturevalue(request.param)


def test_nothing_is_bought_of_a_deleted_or_sold_out_pool(case: Case) -> None:
    assert case.groups.buy([Purchase(pool="gone", zone=case.zone, pods=())]) == []
    case.sell_out()
    assert case.buy() is None
    assert len(case.machines()) == 1
    case.restock()
    assert case.buy() is not None


def test_no_pool_shrinks_below_its_minimum(case: Case) -> None:
    bought = case.bought()
    names = [one.name for one in (*case.machines(), *case.machines(case.fixed))]
    assert case.groups.end(names) == 1
    assert bought not in case.machines()
    assert case.groups.end(names) == 0


def test_gke_creates_a_preempted_machine_again_under_its_name(gke: Case) -> None:
    (first,) = gke.machines()
    assert gke.groups.restore() == (False, [])
    gke.preempt(first)
    assert gke.groups.restore() == (True, [])
    assert gke.machines() == [replace(first, generation=2)]


def test_gke_gives_up_a_preempted_machine_of_a_sold_out_autoscaled_pool(gke: Case) -> None:
    bought = gke.bought()
    gke.preempt(bought)
    gke.sell_out()
    came_back, lost = gke.groups.restore()
    assert (came_back, [each.zone for each in lost]) == (False, [gke.zone])
    assert bought.name not in {one.name for one in gke.machines()}


def test_gke_keeps_requesting_the_machines_of_a_fixed_pool(gke: Case) -> None:
    gke.preempt(gke.machines(gke.fixed)[0], gke.fixed)
    gke.sell_out("system")
    assert gke.groups.restore() == (False, [])
    gke.restock("system")
    assert gke.groups.restore() == (True, [])


def test_aks_deletes_a_preempted_machine(aks: Case) -> None:
    assert isinstance(aks.groups, ScaleSets)
    (first,) = aks.machines()
    bought = aks.bought()
    for taken in (first, bought):
        aks.groups.take(taken.name)
    assert aks.machines() == []
    assert aks.groups.restore() == (False, [])
    assert aks.bought().name != bought.name
