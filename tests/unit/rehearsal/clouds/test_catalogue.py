"""What a cloud's catalogue says of a type decides how its objects are made, changed and refused."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.clouds.catalogue import Call, Catalogue, Deletion, ResourceRequest, Rules
from pulumi_holdfast.rehearsal.clouds.cloud import ResourceReference, SimulatedCloud
from pulumi_holdfast.rehearsal.clouds.schema import Schema
from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN
from pulumi_holdfast.rehearsal.errors import RehearsalError

_POOL = "gcp:container/nodePool:NodePool"
_INPUTS: Mapping[str, JsonValue] = {
    "cluster": "train",
    "name": "a100",
    "nodeConfig": {"machineType": "a2-highgpu-1g"},
}


def _cloud(folder: Path, rules: Rules | None = None, catalogue: Catalogue | None = None) -> SimulatedCloud:
    known = replace(catalogue or Catalogue(), resources={_POOL: rules or Rules()})
    return SimulatedCloud(Schema.for_package("gcp"), known, CloudState(folder / "gcp.json"))


def _reference(name: str = "pool") -> ResourceReference:
    return ResourceReference(type=_POOL, urn=f"urn:pulumi:test::rehearsed::{_POOL}::{name}", configuration={})


def _with_gpu_taint(request: ResourceRequest) -> JsonValue:
    config = request.inputs["nodeConfig"]
    assert isinstance(config, Mapping)
    return {**config, "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}]}


def test_a_preview_shows_what_the_program_sets_and_not_what_the_cloud_sets(tmp_path: Path) -> None:
    rules = Rules(computed={"nodeConfig": _with_gpu_taint, "version": lambda _: "1.36"})
    planned = _cloud(tmp_path, rules).plan(_POOL, _INPUTS)
    config = planned["nodeConfig"]
    assert isinstance(config, Mapping)
    assert config["machineType"] == "a2-highgpu-1g"
    assert config["diskType"] is UNKNOWN
    assert planned["version"] is UNKNOWN


def test_a_taint_the_cloud_adds_shows_in_the_outputs_and_is_no_drift(tmp_path: Path) -> None:
    cloud = _cloud(tmp_path, Rules(computed={"nodeConfig": _with_gpu_taint}))
    made = cloud.create(_reference(), _INPUTS)
    assert "taints" in str(made.outputs["nodeConfig"])
    assert cloud.read(_POOL, made.id) == made
    assert made.inputs == _INPUTS


def test_a_refused_create_or_update_changes_nothing(tmp_path: Path) -> None:
    cloud = _cloud(
        tmp_path, Rules(refuse_create=(lambda _: None, lambda request: f"{request.name}: no such zone"))
    )
    with pytest.raises(RehearsalError, match="a100: no such zone"):
        cloud.create(_reference(), _INPUTS)
    assert cloud.state.read().all() == []
    cloud = _cloud(tmp_path, Rules(refuse_update=(lambda _: "the cluster is being upgraded",)))
    made = cloud.create(_reference(), _INPUTS)
    with pytest.raises(RehearsalError, match="the cluster is being upgraded"):
        cloud.update(_reference(), made.id, {**_INPUTS, "nodeCount": 2})
    assert cloud.read(_POOL, made.id) == made


def test_a_refusal_sees_what_else_exists(tmp_path: Path) -> None:
    def last_one(deletion: Deletion) -> str | None:
        return "the last pool stays" if len(deletion.inventory.of_type(_POOL)) == 1 else None

    cloud = _cloud(tmp_path, Rules(refuse_delete=(last_one,)))
    first = cloud.create(_reference("first"), {**_INPUTS, "name": "first"})
    second = cloud.create(_reference("second"), {**_INPUTS, "name": "second"})
    cloud.delete(_POOL, first.id)
    with pytest.raises(RehearsalError, match="the last pool stays"):
        cloud.delete(_POOL, second.id)


def test_the_rules_make_the_id_and_fix_the_name_and_its_scope(tmp_path: Path) -> None:
    rules = Rules(identify=lambda request: f"projects/acme/nodePools/{request.name}")
    assert _cloud(tmp_path, rules).create(_reference(), _INPUTS).id == "projects/acme/nodePools/a100"
    catalogue = Catalogue(scopes=frozenset({"cluster", "zone"}))
    kind = _cloud(tmp_path, Rules(immutable=frozenset({"nodeConfig"})), catalogue).kind(_POOL)
    assert kind.immutable >= {"name", "cluster", "nodeConfig"}


def test_a_function_is_found_by_its_token_and_sees_the_cloud(tmp_path: Path) -> None:
    def count(call: Call) -> Mapping[str, JsonValue]:
        return {"pools": len(call.inventory.of_type(_POOL)), "asked": call.arguments["cluster"]}

    cloud = _cloud(tmp_path, catalogue=Catalogue(invokes={"gcp:container/countPools:countPools": count}))
    cloud.create(_reference(), _INPUTS)
    answer = cloud.invoke("gcp:container/countPools:countPools", {"cluster": "train"}, {})
    assert answer == {"pools": 1, "asked": "train"}
