"""What a tier says of its pool's machines, for admission."""

from __future__ import annotations

from dataclasses import replace

from holdfast.components.fallback_policy.ladder import facts_object, room_object
from holdfast.components.fallback_policy.tier_schema import facts_schema
from holdfast.scheduling.pools import summarize_pool
from holdfast.scheduling.reachability.machine_capacity import MOST_CAPACITIES, Provisioner, machine_capacity
from tests.support.json_objects import obj
from tests.support.ladders import A100_SPOT, FACTS, MACHINES


def test_what_pods_get_of_machines_is_written_for_the_api_server() -> None:
    known = summarize_pool(A100_SPOT, MACHINES, A100_SPOT.taints, provisioner=Provisioner.LOCAL)
    assert facts_object(known)["machines"] == [
        {"name": "large", "cpu": "95900m", "memory": "1179638Mi", "gpus": 8, "pods": 110},
        {"name": "larger", "cpu": "127900m", "memory": "999990Mi", "gpus": 8, "pods": 110},
    ], "without what is reserved there; neither has all that the other has"


def test_of_machines_that_are_not_known_nothing_is_written() -> None:
    assert "machines" not in facts_object(FACTS), (
        "who makes its nodes, and with that what is left, is not known"
    )


def test_the_schema_takes_as_many_machines_as_are_written_at_most() -> None:
    machines = obj(obj(facts_schema()["properties"])["machines"])
    assert machines["maxItems"] == MOST_CAPACITIES, (
        "an unbounded list would be beyond what an expression may cost"
    )
    room = room_object(replace(machine_capacity(MACHINES[0], Provisioner.LOCAL), accelerator="a100"))
    assert room.keys() == obj(obj(machines["items"])["properties"]).keys(), "what it does not know it drops"
