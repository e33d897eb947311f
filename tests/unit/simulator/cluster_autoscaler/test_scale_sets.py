"""Scale sets buy and end machines, and make none again that Azure took."""

from pathlib import Path

import pytest

from holdfast.simulator.clouds.azure.instances import restock, sell_out
from holdfast.simulator.clouds.machines import Instance
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.cluster_autoscaler.scale_sets import ScaleSets
from holdfast.simulator.cluster_autoscaler.scale_up import Purchase
from tests.support.aks_objects import agent_pool, aks_cluster
from tests.support.autoscaling_objects import needs

ZONE = "eastus2-1"
POOL = agent_pool(count=1, minCount=1, maxCount=4)
FIXED = agent_pool("fixed", enableAutoScaling=False, count=1, digest="f1")


@pytest.fixture
def cloud(tmp_path: Path) -> CloudState:
    found = CloudState(tmp_path / "azure-native.json")
    with found.changing() as inventory:
        for one in (aks_cluster(), POOL, FIXED):
            inventory.put(one)
    return found


@pytest.fixture
def scale_sets(cloud: CloudState) -> ScaleSets:
    return ScaleSets(cloud)


def _buy(scale_sets: ScaleSets) -> Instance | None:
    (done,) = scale_sets.buy([Purchase(pool=POOL.id, zone=ZONE, pods=(needs(),))])
    return done.instance


def _machines(scale_sets: ScaleSets, pool: CloudObject = POOL) -> list[Instance]:
    (seen,) = [seen for seen in scale_sets.seen() if seen.pool.id == pool.id]
    return list(seen.instances)


def test_a_cloud_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert ScaleSets(CloudState(tmp_path / "azure-native.json")).seen() == [], "nobody has made one"
    assert list(tmp_path.iterdir()) == [], "and looking makes none"


def test_a_machine_that_is_bought_is_there_under_a_scale_sets_name(scale_sets: ScaleSets) -> None:
    bought = _buy(scale_sets)
    assert bought is not None, "there was no reason to have none"
    assert bought in _machines(scale_sets), "the next look does not see it"
    first, second = _machines(scale_sets)
    assert (first.name[-6:], second.name[-6:]) == ("000000", "000001"), "they are counted"
    assert first.name[:-6] == second.name[:-6], "in the one scale set there is, over all zones"
    assert first.name.startswith("aks-cpu-"), "which is named after the pool"
    seen = next(seen for seen in scale_sets.seen() if seen.pool.id == POOL.id)
    assert scale_sets.group_of(seen, bought) == bought.name[:-6], "so events call it"
    assert bought.name in {machine.name for machine in scale_sets.machines()}, "and it is a node"


def test_nothing_is_bought_of_a_pool_that_is_gone_or_sold_out(
    scale_sets: ScaleSets, cloud: CloudState
) -> None:
    assert scale_sets.buy([Purchase(pool="gone", zone=ZONE, pods=())]) == [], "it was deleted in between"
    with cloud.changing() as console:
        sell_out("cpu", console)
    assert _buy(scale_sets) is None, "there is none to be had"
    assert len(_machines(scale_sets)) == 1, "and none was written down"
    with cloud.changing() as console:
        restock("cpu", console)
    assert _buy(scale_sets) is not None, "there are some again"


def test_a_machine_that_azure_took_stays_away(scale_sets: ScaleSets) -> None:
    bought = _buy(scale_sets)
    assert bought is not None, "there is one to lose"
    scale_sets.take(bought.name)
    assert bought not in _machines(scale_sets), "its eviction policy is to delete it"
    assert scale_sets.restore() == (False, []), "and its scale set is smaller for it"
    again = _buy(scale_sets)
    assert again is not None, "another can be bought"
    assert again.name != bought.name, "which is another one"


def test_the_first_machines_of_a_pool_can_be_taken_too(scale_sets: ScaleSets) -> None:
    (first,) = _machines(scale_sets)
    scale_sets.take(first.name)
    assert _machines(scale_sets) == [], "although nobody bought it"


def test_no_pool_is_left_with_fewer_than_its_minimum(scale_sets: ScaleSets) -> None:
    bought = _buy(scale_sets)
    names = [one.name for one in (*_machines(scale_sets), *_machines(scale_sets, FIXED))]
    assert scale_sets.end(names) == 1, "one of two may go, and none of a pool of fixed size"
    assert bought not in _machines(scale_sets), "the newest goes first"
    assert scale_sets.end(names) == 0, "now none may"


def test_a_pool_that_is_made_anew_has_other_machines(scale_sets: ScaleSets, cloud: CloudState) -> None:
    before = {one.name for one in _machines(scale_sets)}
    with cloud.changing() as console:
        console.put(agent_pool(count=1, minCount=1, maxCount=4, digest="d2"))
    assert not before & {one.name for one in _machines(scale_sets)}, "it would find its predecessor's"


def test_pods_are_not_told_that_a_pool_is_sold_out(scale_sets: ScaleSets) -> None:
    assert scale_sets.out_of_stock(ZONE) is None, "as on AKS"
