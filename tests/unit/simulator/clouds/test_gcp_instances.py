"""The machines behind node pools keep their names, and no two share one."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.clouds.gcp.instances import (
    INSTANCE,
    State,
    drop,
    forget_lost_pools,
    instances_of,
    is_sold_out,
    machines_of,
    new_instance,
    record,
    restock,
    sell_out,
)
from holdfast.simulator.clouds.gcp.nodes import template_of
from holdfast.simulator.clouds.machines import Group
from holdfast.simulator.clouds.state import CloudObject, Inventory
from tests.support.autoscaling_objects import node_pool

FIXED = node_pool(autoscaling=None, nodeCount=2)


def _names(pool: CloudObject, inventory: Inventory) -> list[str]:
    return [machine.name for machine in machines_of(Group(target=pool, inventory=inventory))]


@given(first=st.integers(0, 40), more=st.integers(0, 40))
def test_every_machine_has_a_name_of_its_own_that_a_node_may_have(first: int, more: int) -> None:
    pool = node_pool("a-pool-with-a-name-of-40-characters-12345", autoscaling=None, nodeCount=first)
    inventory = Inventory([pool], {})
    template = template_of(pool, inventory)
    for at in range(more):
        record(pool, new_instance(pool, template, template.zones[at % 2], inventory), inventory)
    names = _names(pool, inventory)
    assert len(set(names)) == len(names) == 2 * first + more, "two machines share a name, or one is missing"
    assert all(len(name) <= 63 for name in names), "a node's name is too long"


def test_a_machine_keeps_its_name_and_a_new_pools_machines_have_others() -> None:
    again = replace(FIXED, digest="d2")
    assert _names(FIXED, Inventory([], {})) == _names(FIXED, Inventory([], {})), (
        "they are the same at each look"
    )
    assert not {*_names(FIXED, Inventory([], {}))} & {*_names(again, Inventory([], {}))}, (
        "a pool that was replaced would find its predecessor's machines"
    )


def test_machines_are_spread_over_the_pools_zones() -> None:
    template = template_of(FIXED, Inventory([], {}))
    zones = [one.zone for one in instances_of(FIXED, template, Inventory([], {}))]
    assert sorted(zones) == ["europe-west4-a"] * 2 + ["europe-west4-b"] * 2, (
        "one zone has more than its share"
    )


def test_a_machine_that_was_taken_is_no_node_until_it_runs_again() -> None:
    inventory = Inventory([FIXED], {})
    template = template_of(FIXED, inventory)
    taken = instances_of(FIXED, template, inventory)[0]
    record(FIXED, replace(taken, state=State.TERMINATED), inventory)
    assert taken.name not in _names(FIXED, inventory), "a machine that is off is a node"
    assert len(instances_of(FIXED, template, inventory)) == 4, "its group forgets it"
    record(FIXED, replace(taken, generation=2), inventory)
    assert taken.name in _names(FIXED, inventory), "it does not come back"


def test_a_machine_that_is_dropped_stays_away_and_leaves_no_trace_it_need_not() -> None:
    pool = node_pool(initialNodeCount=1)
    inventory = Inventory([pool], {})
    template = template_of(pool, inventory)
    bought = new_instance(pool, template, "europe-west4-a", inventory)
    record(pool, bought, inventory)
    for one in instances_of(pool, template, inventory):
        drop(pool, template, one, inventory)
    assert _names(pool, inventory) == [], "a machine that was given back is there"
    assert inventory.find(INSTANCE, bought.name) is None, "what is written down grows for ever"


def test_machines_go_with_their_pool() -> None:
    pool, lost = node_pool(digest="new"), node_pool(digest="old")
    inventory = Inventory([pool], {})
    for one in (pool, lost):
        template = template_of(one, inventory)
        record(one, new_instance(one, template, "europe-west4-a", inventory), inventory)
    assert len(_names(pool, inventory)) == 1, (
        "the machine of a pool that is gone belongs to the next of its name"
    )
    forget_lost_pools({pool.id: pool}, inventory)
    assert len(inventory.of_type(INSTANCE)) == 1, "what is written down of it stays for ever"


def test_stock_is_out_in_one_zone_or_in_all() -> None:
    inventory = Inventory([], {})
    sell_out("cpu", inventory, zone="a")
    assert is_sold_out("cpu", "a", inventory), "that zone has none"
    assert not is_sold_out("cpu", "b", inventory), "the other one has"
    sell_out("cpu", inventory)
    assert is_sold_out("cpu", "b", inventory), "now none has"
    restock("cpu", inventory)
    restock("cpu", inventory)
    assert not is_sold_out("cpu", "b", inventory), "there are some again"
    assert is_sold_out("cpu", "a", inventory), "but not there"
