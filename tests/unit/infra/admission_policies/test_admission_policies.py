"""The manifests that check jobs in the API server, from the files of any program."""

import json
from pathlib import Path

import pytest
import yaml

from holdfast.__main__ import main
from holdfast.infra.admission_policies.facts import tier_facts
from holdfast.infra.admission_policies.manifests import admission_manifests
from holdfast.infra.admission_policies.program import read_program
from holdfast.policies.program.pools.all_pools import all_pools
from holdfast.scheduling.errors import ConfigError
from holdfast.scheduling.json import UNKNOWN, Json, JsonValue
from holdfast.scheduling.labels import ZONE
from holdfast.scheduling.reachability.facts import PoolFacts
from holdfast.scheduling.reachability.label_values import LabelValues
from tests.support.builders.reachability import on_demand, spot
from tests.support.json_objects import obj, objects

LADDER: Json = {
    "apiVersion": "holdfast.dev/v1alpha1",
    "kind": "FallbackPolicy",
    "metadata": {"name": "ladder", "namespace": "vision"},
    "spec": {"tiers": [{"pool": "a100-spot", "procurementTimeout": "15m"}, {"pool": "a100"}]},
}


ZONES = ("us-east-1a", "us-east-1b")


def node_pool(name: str, capacity: str, *, label: str = "", taints: tuple[Json, ...] = ()) -> Json:
    requirements: list[Json] = [
        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": [capacity]},
        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": ["p4d.24xlarge"]},
        {"key": ZONE, "operator": "In", "values": [*ZONES]},
    ]
    node_class: Json = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "limits": {"cpu": "192"},
            "template": {
                "metadata": {"labels": {"holdfast.dev/pool": label or name}},
                "spec": {"nodeClassRef": node_class, "requirements": [*requirements], "taints": [*taints]},
            },
        },
    }


SPOT_TAINT: Json = {"key": "karpenter.sh/capacity-type", "value": "spot", "effect": "NoSchedule"}
POOLS = (node_pool("a100-spot", "spot", taints=(SPOT_TAINT,)), node_pool("a100", "on-demand"))


def written(folder: Path, *manifests: Json, name: str = "program.yaml") -> Path:
    file = folder / name
    file.write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    return file


def state(manifest: Json) -> Json:
    token = f"kubernetes:{manifest['apiVersion']}:{manifest['kind']}"
    urn = f"urn:pulumi:dev::app::{token}::{obj(manifest['metadata'])['name']}"
    return {
        "type": token,
        "urn": urn,
        "inputs": manifest,
        "provider": "urn:p::id",
        "propertyDependencies": {},
    }


def facts_in(manifests: list[Json]) -> list[Json]:
    (policy,) = (each for each in manifests if each["kind"] == "FallbackPolicy")
    return [obj(tier["facts"]) for tier in objects(obj(policy["spec"])["tiers"])]


def test_fallback_policy_gets_the_facts_of_the_pools_that_its_tiers_name(tmp_path: Path) -> None:
    on_spot, last = facts_in(admission_manifests(read_program([written(tmp_path, LADDER, *POOLS)])))
    assert (on_spot["capacity"], last["capacity"]) == ("spot", "on-demand"), "by the NodePools' requirements"
    assert on_spot["taints"] == [SPOT_TAINT], "a job has to tolerate it"
    assert objects(last["machines"])[0]["name"] == "p4d.24xlarge", "by the machine table"
    assert last["maxNodes"] == 2, "192 CPUs are two machines of 96"
    assert obj(last["labels"])["holdfast.dev/pool"] == "a100", "pods select it"
    assert obj(last["labelValues"])[ZONE] == [*ZONES], "pods may select each"


def test_tier_of_a_node_pool_for_any_pool_gets_facts_with_its_own_label(tmp_path: Path) -> None:
    on_spot, last = POOLS
    spec = obj(last["spec"])
    given = obj(obj(spec["template"])["spec"])
    any_pool: Json = {"key": "holdfast.dev/pool", "operator": "NotIn", "values": ["a100-spot"]}
    requirements: list[JsonValue] = [*objects(given["requirements"]), any_pool]
    shared: Json = {**last, "spec": {**spec, "template": {"spec": {**given, "requirements": requirements}}}}
    facts = facts_in(admission_manifests(read_program([written(tmp_path, LADDER, on_spot, shared)])))[-1]
    assert facts["capacity"] == "on-demand", "Karpenter makes its nodes for pods that select the tier"
    assert obj(facts["labels"])["holdfast.dev/pool"] == "a100", "and sets the label that they select"


def test_tier_elsewhere_gets_no_facts_of_a_pool_here(tmp_path: Path) -> None:
    away: Json = {"cluster": "us-east-2", "pool": "a100", "procurementTimeout": "15m"}
    first, last = objects(obj(LADDER["spec"])["tiers"])
    ladder: Json = {**LADDER, "spec": {"tiers": [first, away, last]}}
    manifests = admission_manifests(read_program([written(tmp_path, ladder, *POOLS)]))
    (policy,) = (each for each in manifests if each["kind"] == "FallbackPolicy")
    tiers = objects(obj(policy["spec"])["tiers"])
    assert tiers[1] == away, "the pool of that name is in this cluster"
    assert "facts" in tiers[2], "here it is a tier, too"


@pytest.mark.parametrize(
    ("exported", "reason"),
    [
        ({"version": 3, "deployment": {"resources": [*map(state, (LADDER, *POOLS))]}}, "pulumi stack export"),
        ({"steps": [{"op": "create", "newState": state(each)} for each in (LADDER, *POOLS)]}, "pulumi preview --json"),
        ({"apiVersion": "v1", "kind": "List", "items": [LADDER, *POOLS]}, "kubectl get -o json"),
    ],
)  # fmt: skip
def test_program_is_read_as_each_command_prints_it(tmp_path: Path, exported: Json, reason: str) -> None:
    file = tmp_path / "program.json"
    file.write_text(json.dumps(exported), encoding="utf-8")
    manifests = facts_in(admission_manifests(read_program([written(tmp_path, LADDER, *POOLS)])))
    assert facts_in(admission_manifests(read_program([file]))) == manifests, f"{reason} says the same"


def test_facts_leave_out_what_differs_between_node_pools_of_one_label() -> None:
    both = tier_facts([on_demand(labels={"disk": "fast"}), spot(labels={"disk": "slow"})])
    assert both is not None, "the capacity types are known"
    assert both["capacity"] == "on-demand", "a job arrives on the on-demand one"
    assert "labels" not in both, "a job that selects either is right"
    east, west = (LabelValues(values=frozenset({zone})) for zone in ("east", "west"))
    for other, zones in (
        (west, ["east", "west"]),
        ("west", ["east", "west"]),
        (UNKNOWN, None),
        (LabelValues.of("NotIn", ["a"]), None),
    ):
        found = tier_facts([on_demand(labels={ZONE: east}), on_demand(labels={ZONE: other})]) or {}
        assert obj(found.get("labelValues", {})).get(ZONE) == zones, (
            f"{other}: nodes are in any zone of both, if known"
        )
    assert tier_facts([on_demand(capacity_types=frozenset({"on-demand"}), is_decided=False)]) is None, (
        "not known"
    )


@pytest.mark.parametrize(
    ("pool", "fact"),
    [
        (on_demand(labels=UNKNOWN), "labels"),
        (on_demand(labels={"disk": UNKNOWN}), "labels"),
        (on_demand(taints=UNKNOWN), "taints"),
        (on_demand(added_tolerations=UNKNOWN), "taints"),
        (on_demand(machines=UNKNOWN), "machines"),
        (on_demand(unknown_machine_types=("x9.large",)), "machines"),
    ],
)
def test_unknown_fact_is_left_out(pool: PoolFacts, fact: str) -> None:
    assert fact in (tier_facts([on_demand()]) or {}), "the pool has it"
    assert fact not in (tier_facts([pool]) or {}), "a missing fact never rejects a job"


def test_pool_of_another_program_keeps_the_facts_that_its_tier_has(tmp_path: Path) -> None:
    known: Json = {"capacity": "on-demand", "maxNodes": 4}
    tiers: list[Json] = [
        {"pool": "a100-spot", "procurementTimeout": "15m"},
        {"pool": "elsewhere", "facts": known},
    ]
    ladder = {**LADDER, "spec": {"tiers": [*tiers]}}
    assert facts_in(admission_manifests(read_program([written(tmp_path, ladder, *POOLS)])))[1] == known, (
        "nothing here knows better"
    )


def test_taints_of_the_program_are_tolerated_only_as_its_own_admission_adds_tolerations(
    tmp_path: Path,
) -> None:
    annotation = {"taint": SPOT_TAINT, "selections": [{"key": "holdfast.dev/pool", "values": ["a100-spot"]}]}
    policy: Json = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": "own", "annotations": {"holdfast.dev/tolerates": json.dumps(annotation)}},
    }
    given = [
        next(
            str(each["expression"])
            for each in objects(obj(found["spec"])["variables"])
            if each["name"] == "given"
        )
        for extra in ((), (policy,))
        for found in admission_manifests(read_program([written(tmp_path, LADDER, *POOLS, *extra)]))
        if obj(found["metadata"])["name"] == "training-jobsets-can-fall-back"
        and "variables" in obj(found["spec"])
    ]
    assert "a100-spot" not in given[0], "nothing adds a toleration"
    assert "karpenter.sh/capacity-type=spot:NoSchedule" in given[1], "its policy does"


def test_command_prints_manifests_that_warn_if_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = written(tmp_path, LADDER, *POOLS)
    for arguments, action in (((), "Deny"), (("--warn",), "Warn")):
        assert main(["policies", "admission", str(file), *arguments]) == 0, "it succeeds"
        manifests = [
            each
            for each in yaml.load_all(capsys.readouterr().out, yaml.CSafeLoader)
            if each["kind"].endswith("Binding")
        ]
        actions = {
            tuple(each["spec"].get("validationActions", ()))
            for each in manifests
            if each["metadata"]["name"].endswith("-can-fall-back")
        }
        assert actions == {(action,)}, "both kinds of jobs"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("metadata: {}", "a document without `apiVersion` and `kind`"),
        ("[1, 2]", "a document that is no object"),
        ("a: [", "neither YAML nor JSON"),
        ("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}", "one FallbackPolicy or more"),
    ],
)
def test_file_without_a_ladder_is_refused_with_what_is_allowed(
    tmp_path: Path, text: str, message: str
) -> None:
    file = tmp_path / "program.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        admission_manifests(read_program([file]))


def test_value_that_only_the_update_knows_is_refused(tmp_path: Path) -> None:
    unknown = {**LADDER, "spec": {"tiers": [{"pool": "04da6b54-80e4-46f7-96ec-b56ff0331ba9"}]}}
    file = tmp_path / "preview.json"
    file.write_text(json.dumps({"steps": [{"newState": state(unknown)}]}), encoding="utf-8")
    assert all_pools(read_program([file])) == (), "there are no pools"
    with pytest.raises(ConfigError, match="a value that only the update knows"):
        admission_manifests(read_program([file]))
