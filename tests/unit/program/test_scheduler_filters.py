"""The checks find of recorded pods and nodes what the filters of the real scheduler answered, compiled from Kubernetes 1.36."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Final, TypeAlias, cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json, Unknown
from pulumi_holdfast.ladder.labels import GPU_RESOURCE
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, OTHERS, any_holds
from pulumi_holdfast.ladder.reachability.pod_capacity import alternatives
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, Resources, Shape
from pulumi_holdfast.ladder.taints import Taint, untolerated
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.pools.pool import taint_of
from pulumi_holdfast.program.resources import Value
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj, objects

#: A pod and a node on each line, with what each filter answered.
RECORDED: Final = ROOT / "tests/fixtures/scheduler-1.36/filters.jsonl"
FILTERS: Final = ("affinity", "taints", "resources")
#: What passes, by filter; UNKNOWN where the checks give no verdict.
Verdicts: TypeAlias = Mapping[str, bool | Unknown]


def verdicts(pod: Json, node: Json) -> Verdicts:
    """What the checks find of a pod and a node."""
    shape = PodTemplate(name="drawn", pods=1, template=cast("Value", pod)).shape
    if not isinstance(shape, Shape):
        return dict.fromkeys(FILTERS, UNKNOWN)
    labels = obj(obj(node["metadata"])["labels"])
    on_node = {**{key: str(value) for key, value in labels.items()}, OTHERS: ABSENT}
    terms = alternatives(replace(shape, zones=None))
    taints = [taint_of(cast("Value", each)) for each in objects(obj(node["spec"])["taints"])]
    known = [each for each in taints if isinstance(each, Taint)]
    return {
        "affinity": any_holds(terms, on_node) if terms else not shape.affinity,
        "taints": not untolerated(known, shape.tolerations),
        "resources": shape.requests.fits_in(allocatable(node)),
    }


def allocatable(node: Json) -> Resources:
    there = {
        name: int(str(amount).removesuffix("m").removesuffix("Mi"))
        for name, amount in obj(obj(node["status"])["allocatable"]).items()
    }
    return Resources(
        cpu_millis=there["cpu"],
        memory_mib=there["memory"],
        gpus=there[GPU_RESOURCE],
        devices={name: there[name] for name in (EPHEMERAL_STORAGE, "hugepages-2Mi", "example.com/nic")},
    )


@cache
def recorded() -> tuple[tuple[Json, Mapping[str, bool]], ...]:
    """The questions and the answers."""
    lines = [obj(json.loads(line)) for line in RECORDED.read_text(encoding="utf-8").splitlines()]
    return tuple((obj(each["question"]), cast("Mapping[str, bool]", each["answer"])) for each in lines)


@pytest.mark.parametrize("name", FILTERS)
def test_check_agrees_with_the_recorded_filter_of_the_scheduler(name: str) -> None:
    counted: Counter[bool] = Counter()
    for asked, answer in recorded():
        found = verdicts(obj(asked["pod"]), obj(asked["node"]))[name]
        assert found in {UNKNOWN, answer[name]}, f"the scheduler answered otherwise: {json.dumps(asked)}"
        counted[answer[name]] += 1
    assert min(counted[True], counted[False]) > 10
