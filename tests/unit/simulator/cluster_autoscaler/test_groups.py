"""Instance groups buy and end machines, and make those again that were taken from them."""

from dataclasses import replace
from pathlib import Path

import pytest

from holdfast.simulator.clouds.gcp.instances import Instance, State, record, restock, sell_out
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.cluster_autoscaler.instance_groups import InstanceGroups
from holdfast.simulator.cluster_autoscaler.scale_up import Purchase
from tests.support.autoscaling_objects import needs, node_pool

ZONE = "europe-west4-a"
POOL = node_pool(autoscaling={"totalMinNodeCount": 1, "totalMaxNodeCount": 4})
FIXED = node_pool("system", autoscaling=None, nodeCount=1)


@pytest.fixture
def cloud(tmp_path: Path) -> CloudState:
    found = CloudState(tmp_path / "gcp.json")
    with found.changing() as inventory:
        inventory.put(POOL)
        inventory.put(FIXED)
    return found


@pytest.fixture
def groups(cloud: CloudState) -> InstanceGroups:
    return InstanceGroups(cloud)


def _buy(groups: InstanceGroups, pool: CloudObject = POOL) -> Instance | None:
    (done,) = groups.buy([Purchase(pool=pool.id, zone=ZONE, pods=(needs(),))])
    return done.instance


def _machines(groups: InstanceGroups, pool: CloudObject = POOL) -> list[Instance]:
    (seen,) = [seen for seen in groups.seen() if seen.pool.id == pool.id]
    return list(seen.instances)


def _take(cloud: CloudState, instance: Instance, pool: CloudObject = POOL) -> None:
    with cloud.changing() as inventory:
        record(pool, replace(instance, state=State.TERMINATED), inventory)


def _sell_out(cloud: CloudState, pool: str) -> None:
    with cloud.changing() as inventory:
        sell_out(pool, inventory)


def test_a_machine_that_is_bought_is_there(groups: InstanceGroups) -> None:
    bought = _buy(groups)
    assert bought is not None, "there was no reason to have none"
    assert bought in _machines(groups), "the next look does not see it"


def test_nothing_is_bought_of_a_pool_that_is_gone_or_sold_out(
    groups: InstanceGroups, cloud: CloudState
) -> None:
    assert groups.buy([Purchase(pool="gone", zone=ZONE, pods=())]) == [], "it was deleted in between"
    _sell_out(cloud, "cpu")
    assert _buy(groups) is None, "there is none to be had"
    assert len(_machines(groups)) == 1, "and none was written down"


def test_a_machine_that_was_taken_is_made_again_under_its_name(
    groups: InstanceGroups, cloud: CloudState
) -> None:
    (first,) = _machines(groups)
    assert groups.restore() == (False, []), "there was nothing to do"
    _take(cloud, first)
    assert groups.restore() == (True, []), "it was made again"
    assert _machines(groups) == [replace(first, generation=2)], "under its name, as another machine"


def test_one_that_is_out_of_stock_is_given_up(groups: InstanceGroups, cloud: CloudState) -> None:
    bought = _buy(groups)
    assert bought is not None, "there is one to lose"
    _take(cloud, bought)
    _sell_out(cloud, "cpu")
    came_back, lost = groups.restore()
    assert (came_back, [each.zone for each in lost]) == (False, [ZONE]), "the autoscaler is told of it"
    assert bought.name not in {one.name for one in _machines(groups)}, "the group goes on asking for it"


def test_a_pool_of_fixed_size_goes_on_asking(groups: InstanceGroups, cloud: CloudState) -> None:
    first = _machines(groups, FIXED)[0]
    _take(cloud, first, FIXED)
    _sell_out(cloud, "system")
    assert groups.restore() == (False, []), "nobody changes how many there are to be"
    with cloud.changing() as inventory:
        restock("system", inventory)
    assert groups.restore() == (True, []), "as soon as there is one it has it"


def test_no_pool_is_left_with_fewer_than_its_minimum(groups: InstanceGroups) -> None:
    bought = _buy(groups)
    names = [one.name for one in (*_machines(groups), *_machines(groups, FIXED))]
    assert groups.end(names) == 1, "one of two may go, and none of a pool of fixed size"
    assert bought not in _machines(groups), "the newest goes first"
    assert groups.end(names) == 0, "now none may"
