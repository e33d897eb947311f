"""Determined's pool list, turned into a stack's pools."""

from pathlib import Path
from typing import cast

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from holdfast.__main__ import main
from holdfast.infra.determined.conversion import as_yaml, convert
from holdfast.infra.determined.parser import MasterFile, read_master_file
from holdfast.infra.naming import as_dns_label
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.machines import is_sold_in, machine_catalogue
from tests.support.builders.configurations import AWS_REGION, Document, aws_problems

SPOT_G4DN: Document = {
    "pool_name": "aws-spot-g4dn-metal",
    "provider": {"type": "aws", "max_instances": 10, "instance_type": "g4dn.metal", "spot": True},
}


def changed(**provider: JsonValue) -> Document:
    """The pool of Determined's own page on spot, with other values for its provider."""
    return {**SPOT_G4DN, "provider": {**cast("Json", SPOT_G4DN["provider"]), **provider}}


def converted(*pools: JsonValue, auxiliary_pool: str | None = None) -> list[Document]:
    """The pools as a reader of the printed text gets them."""
    text = as_yaml(convert(MasterFile(pools=pools, auxiliary_pool=auxiliary_pool)))
    return cast("list[Document]", yaml.safe_load(text)["pools"])


def refused(*pools: JsonValue) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as error:
        convert(MasterFile(pools=pools, auxiliary_pool=None))
    return error.value.problems


@pytest.mark.parametrize(
    ("pool", "entry", "reason"),
    [
        (SPOT_G4DN, {"name": "aws-spot-g4dn-metal", "capacity": "spot", "instanceTypes": ["g4dn.metal"], "maxNodes": 10}, "each of its four facts has its field"),
        ({"pool_name": "bare", "provider": {"type": "aws"}}, {"name": "bare", "capacity": "on-demand", "instanceTypes": ["g4dn.metal"], "maxNodes": 5}, "missing fields have Determined's defaults"),
        (changed(root_volume_size=300), {"name": "aws-spot-g4dn-metal", "capacity": "spot", "instanceTypes": ["g4dn.metal"], "maxNodes": 10, "diskGiB": 300}, "jobs may need the room"),
    ],
)  # fmt: skip
def test_a_pool_of_determined_becomes_a_pool(pool: Document, entry: Document, reason: str) -> None:
    assert converted(pool)[1] == entry, reason


def test_a_price_cap_is_a_problem_with_the_reason() -> None:
    (problem,) = refused(changed(spot_max_price="2.50"))
    assert problem.field == "resource_pools[0].provider.spot_max_price", "where it stands is named"
    assert "Karpenter has no field that holds a price cap" in problem.allowed, "why it cannot be kept is said"
    assert "maxPrice" in problem.fix, "and what does its work instead"


@pytest.mark.parametrize(
    ("field", "value", "fix"),
    [
        ("min_instances", 1, "down to none"),
        ("startup_script", "mount /data", "DaemonSet"),
        ("container_startup_script", "docker login", "image"),
        ("image_id", "ami-0123", "image"),
        ("custom_tags", [{"key": "a", "value": "b"}], "aws:defaultTags"),
        ("type", "gcp", "Remove the pool"),
        ("instance_type", "g5.48large", 'Write "g5.48xlarge"'),
        ("instance_type", "mainframe", "describe-instance-types"),
        ("instance_type", 7, "Write `instance_type"),
        ("instance_slots", 4, "Remove it."),
        ("max_instances", 0, "`max_instances: 1`"),
        ("max_instances", "ten", "`max_instances: 1`"),
        ("max_instances", 4000, "`max_instances: 1`"),
        ("spot", "yes", "`spot: true`"),
        ("root_volume_size", 10, "`root_volume_size: 30`"),
        ("spot_max_prize", "2.50", "Remove it"),
        ("instance_typ", "m5.large", 'Write "instance_type".'),
    ],
)
def test_a_field_without_an_equivalent_is_one_problem_with_a_fix(
    field: str, value: JsonValue, fix: str
) -> None:
    (problem,) = refused(changed(**{field: value}))
    assert problem.field == f"resource_pools[0].provider.{field}", "it is named where it is"
    assert fix in problem.fix, "and what to do is said"


@pytest.mark.parametrize(
    ("pool", "field"),
    [
        ("a100", "resource_pools[0]"),
        ({"pool_name": "mine"}, "resource_pools[0].provider"),
        ({"provider": {"type": "aws"}}, "resource_pools[0].pool_name"),
        ({**SPOT_G4DN, "pool_name": "__"}, "resource_pools[0].pool_name"),
        ({**SPOT_G4DN, "kubernetes_namespace": "ml"}, "resource_pools[0].kubernetes_namespace"),
        ({**SPOT_G4DN, "max_instances": 3}, "resource_pools[0].max_instances"),
    ],
)
def test_a_pool_without_autoscaled_machines_is_a_problem(pool: JsonValue, field: str) -> None:
    assert [problem.field for problem in refused(pool)] == [field], "it is named where it is, and only there"


def test_one_run_reports_all_problems() -> None:
    found = refused(changed(spot_max_price="1"), changed(min_instances=2), {"pool_name": "mine"})
    assert {problem.field.partition("]")[0] for problem in found} >= {
        "resource_pools[0",
        "resource_pools[1",
        "resource_pools[2",
    }, "one run reports all problems"


def test_names_are_converted_with_a_note_and_must_differ() -> None:
    (problem,) = refused({**SPOT_G4DN, "pool_name": "a100 spot"}, {**SPOT_G4DN, "pool_name": "a100-spot"})
    assert problem.field == "resource_pools[1].pool_name", "two pools would have the same name"
    conversion = convert(MasterFile(pools=[{**SPOT_G4DN, "pool_name": "A100_Spot"}], auxiliary_pool=None))
    assert conversion.pools[1].name == "a100-spot", "jobs select nodes by it"
    renamed = '"A100_Spot" is renamed to a100-spot'
    assert any(renamed in note for note in conversion.notes), "job authors must know"
    conversion = convert(MasterFile(pools=[changed(ssh_key_name="ops", tag_key="team")], auxiliary_pool=None))
    assert any("ssh_key_name, tag_key" in note for note in conversion.notes), "nothing vanishes in silence"


CPU: Document = {"pool_name": "aux", "provider": {"type": "aws", "instance_type": "m5.xlarge"}}
CPU_TWO: Document = {"pool_name": "cpu", "provider": {"type": "aws", "instance_type": "c5.xlarge"}}


def test_the_auxiliary_pool_becomes_the_default_and_otherwise_one_is_added() -> None:
    pools = converted(CPU_TWO, CPU, auxiliary_pool="aux")
    assert [pool["name"] for pool in pools if pool.get("default")] == ["aux"], "the default as before"
    pools = converted({**SPOT_G4DN, "pool_name": "cpu"})
    assert [pool["name"] for pool in pools if pool.get("default")] == ["cpu-2"], "under a free name"


def test_a_master_file_parses_as_in_determined(tmp_path: Path) -> None:
    file = tmp_path / "master.yaml"
    file.write_text(
        "db: {user: postgres}\n"
        "resource_manager: {type: agent, default_aux_resource_pool: aux}\n"
        "resource_pools:\n"
        "  - pool_name: aux\n"
        "    provider: {type: aws, instance_type: m5.xlarge}\n"
    )
    read = read_master_file(file)
    assert read.auxiliary_pool == "aux", "the rest of the file is of no interest"
    assert len(read.pools) == 1, "and its pools are these"


@pytest.mark.parametrize(
    "content", ["", "[]", "resource_pools: []", "resource_pools: 3", "a: [", "resource_pools:"]
)
def test_a_file_without_pools_is_one_problem(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "master.yaml"
    file.write_text(content)
    assert main(["determined", str(file)]) == 1, "a script notices"
    shown = capsys.readouterr()
    assert shown.err.startswith(f"error: {file}"), "the file is named"
    assert shown.err.count("\n") == 1, "one line, no traceback"
    assert not shown.out, "and nothing that could be taken for pools"


def test_the_command_prints_pools_and_comments(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "master.yaml"
    file.write_text(yaml.safe_dump({"resource_pools": [SPOT_G4DN, CPU]}))
    assert main(["determined", str(file)]) == 0, "everything in it has an equivalent"
    assert list(yaml.safe_load(capsys.readouterr().out)) == ["pools"], "notes are comments"


TYPES = sorted(name for name in machine_catalogue("aws") if is_sold_in(name, AWS_REGION))


@given(
    st.lists(
        st.fixed_dictionaries(
            {
                "pool_name": st.from_regex(r"[A-Za-z][A-Za-z0-9_ -]{0,30}[A-Za-z0-9]", fullmatch=True),
                "provider": st.fixed_dictionaries(
                    {"type": st.just("aws")},
                    optional={
                        "instance_type": st.sampled_from(
                            [name for name in TYPES if machine_catalogue("aws")[name].on_spot]
                        ),
                        "max_instances": st.integers(1, 1000),
                        "spot": st.booleans(),
                        "root_volume_size": st.integers(100, 1000),
                        "ssh_key_name": st.text(max_size=5),
                    },
                ),
            }
        ),
        min_size=1,
        max_size=5,
    )
)
@settings(max_examples=60, deadline=None)
def test_every_conversion_is_a_valid_configuration(pools: list[Document]) -> None:
    assume(len({as_dns_label(cast("str", pool["pool_name"])) for pool in pools}) == len(pools))
    conversion = convert(MasterFile(pools=pools, auxiliary_pool=None))
    document: Document = {
        "cloud": "aws",
        "cluster": {"publicAccessCidrs": ["203.0.113.0/24"]},
        "pools": [dict(pool.as_entry()) for pool in conversion.pools],
    }
    assert not aws_problems(document), "it can be put into a stack file as it is printed"
