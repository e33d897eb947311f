"""The program as the engine runs it, and as tools read it."""

import gc
import json
import runpy
from collections.abc import Generator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import cast

import pulumi
import pytest
import yaml

from pulumi_holdfast.clouds import CLOUDS, AnyCloud, Settings
from pulumi_holdfast.config.cidrs import placeholder_address_problems
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.stack_program import load_platform, run
from tests.support.builders.configurations import platform_document
from tests.support.fakes.pulumi_engine import record

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _no_configuration_is_left_behind() -> Generator[None]:
    pulumi.runtime.set_all_config({})
    yield
    pulumi.runtime.set_all_config({})


def configure(document: JsonValue) -> None:
    pulumi.runtime.set_all_config({"holdfast:platform": json.dumps(document)})


def stack_file(folder: Path, content: str) -> Path:
    file = folder / "Pulumi.local.yaml"
    file.write_text(content)
    return file


def test_the_program_composes_the_configured_stack() -> None:
    configure(platform_document())
    recording = record(run)
    assert recording.of("TrainingNamespace")


@pytest.mark.parametrize("program", ["infra", "templates/aws", "templates/azure", "templates/gcp"])
def test_pulumi_runs_the_program_with_its_checks_and_no_garbage_collector(
    program: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[tuple[bool, bool]] = []

    def listen(*, check_access: bool) -> None:
        runs.append((check_access, gc.isenabled()))

    monkeypatch.setattr("pulumi_holdfast.stack_program.run", listen)
    gc.enable()
    try:
        runpy.run_path(str(ROOT / program / "__main__.py"))
    finally:
        gc.enable()
    assert runs == [(True, False)]


def test_an_invalid_configuration_stops_the_program_before_any_registration() -> None:
    configure(platform_document(lambda d: d.update(cloud="openstack")))
    refusals: list[str] = []

    def attempt() -> None:
        try:
            run()
        except pulumi.RunError as refusal:
            refusals.append(str(refusal))

    recording = record(attempt)
    assert refusals == [
        'holdfast:platform.cloud: got "openstack"; allowed: local, aws, azure, gcp. Write `cloud: local`.'
    ]
    assert not recording.resources, "a half-made stack would have to be cleaned up by hand"


@pytest.mark.parametrize("text", ["not JSON", '"a text"', "[]"])
def test_a_configuration_that_is_not_a_mapping_is_a_problem(text: str) -> None:
    pulumi.runtime.set_all_config({"holdfast:platform": text})
    with pytest.raises(pulumi.RunError, match=r"^holdfast:platform: got .*; allowed: a mapping"):
        record(run)


def test_a_stack_without_configuration_is_a_problem() -> None:
    with pytest.raises(pulumi.RunError, match=r"^holdfast:platform: got nothing; "):
        record(run)


def test_a_stack_file_parses_as_in_the_program(tmp_path: Path) -> None:
    file = stack_file(tmp_path, yaml.safe_dump({"config": {"holdfast:platform": platform_document()}}))
    assert [pool.name for pool in load_platform(file).pools] == ["cpu", "cpu-spot", "a100-spot", "a100"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        *((content, r"^holdfast:platform: ") for content in ("", "config:", "config: {}", "config: []", "[]", "config: {holdfast:platfrom: {}}")),
        *((f"config: {{holdfast:platform: {{cloud: {name}}}}}", r"^holdfast:platform\.cloud: ") for name in ("2026-01-01", "!!binary aGk=", "1", "~", "{1: 2}")),
        *((content, r"; allowed: ") for content in ("&a [*a]", "config: &a {holdfast:platform: *a}", "\\x00", "\x00", "config: 1: 2")),
        ("config:\n  - {a: b", "line 2"),
        ("config:\n  aws:region: us-west-2\n  aws:region: eu-west-1\n", r"the key \S+ is duplicated.* line [2-5]"),
        ("config: {}\nconfig:\n  holdfast:platform: {}\n", r"the key \S+ is duplicated.* line [2-5]"),
        ("config:\n  holdfast:platform:\n    cloud: local\n    pools: [{name: a}, {name: b,\n      name: c}]\n", r"the key \S+ is duplicated.* line [2-5]"),
        ("a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in pairwise("abcdefghi")), "aliases expand to more than"),
        ("config: {a: ü}".encode("latin-1"), "cannot be read"),
        (None, r"Pulumi\.local\.yaml: got a file that cannot be read \(No such file"),
    ],
)  # fmt: skip
def test_an_unreadable_stack_file_is_a_problem_on_one_line(
    tmp_path: Path, content: str | bytes | None, message: str
) -> None:
    file = tmp_path / "Pulumi.local.yaml"
    if content is not None:
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(ConfigError, match=message) as refused:
        load_platform(file)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("stack", "field"),
    [
        ("aws-dev", "cluster.publicAccessCidrs[0]"),
        ("azure-dev", "cluster.access.public.cidrs[0]"),
        ("gcp-dev", "cluster.access.authorizedNetworks[0]"),
    ],
)
def test_a_placeholder_address_is_refused_outside_of_a_rehearsal(stack: str, field: str) -> None:
    config = yaml.safe_load((ROOT / "stacks" / f"Pulumi.{stack}.yaml").read_text())["config"]
    pulumi.runtime.set_all_config(
        {key: value if isinstance(value, str) else json.dumps(value) for key, value in config.items()}
    )
    with pytest.raises(pulumi.RunError) as refused:
        record(lambda: run(check_access=True))
    assert f"holdfast:platform.{field}: got " in str(refused.value)
    assert "curl -s https://checkip.amazonaws.com" in str(refused.value)


@pytest.mark.parametrize("address", ["192.0.2.7", "198.51.100.0/25", "203.0.113.9/32", "2001:db8:1::/48"])
def test_every_range_of_documentation_is_a_placeholder(address: str) -> None:
    (problem,) = placeholder_address_problems({"a": [{"b": address}]}, "root")
    assert problem.field == "root.a[0].b"


@pytest.mark.parametrize(
    "text", ["203.0.114.0/24", "0.0.0.0/0", "10.0.0.1", "vision", "", "2001:db9::/32", 5, None]
)
def test_other_values_are_no_placeholders(text: JsonValue) -> None:
    assert not list(placeholder_address_problems({"a": text}, "root"))


UNREACHABLE = Problem(field="access", value="private", allowed="a client in the network", fix="Run it there.")


def unreachable(_document: Json, _settings: Settings, _stack: str) -> Problem:
    return UNREACHABLE


CHECKS: dict[str, AnyCloud] = {
    "command": replace(CLOUDS["local"], missing_command=lambda: UNREACHABLE),
    "cluster": replace(CLOUDS["local"], unreachable_api_server=unreachable),
}


@pytest.mark.parametrize("check", CHECKS)
def test_an_unreachable_cluster_stops_an_update_and_is_a_warning_of_a_preview(
    check: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(cast("dict[str, AnyCloud]", CLOUDS), "local", CHECKS[check])
    configure(platform_document())
    with pytest.raises(pulumi.RunError, match=r"^access: got private; allowed"):
        record(lambda: run(check_access=True))
    planned = record(lambda: run(check_access=True), preview=True)
    assert planned.of("TrainingNamespace")
    said = [warning for warning in planned.logged if warning.startswith(str(UNREACHABLE))]
    assert len(said) == 1
    assert "compares the objects in the cluster with the state of the last update" in said[0]
