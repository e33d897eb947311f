"""`holdfast up CLOUD --spot-gpus ACCELERATOR`: the stack file that it plans, and the command around it."""

from __future__ import annotations

import argparse
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from pulumi_holdfast.cli import __main__ as command_line
from pulumi_holdfast.cli.cost.command import cost_of
from pulumi_holdfast.cli.editor_schema import stack_schema
from pulumi_holdfast.cli.spot_gpus.command import prepare
from pulumi_holdfast.cli.spot_gpus.machines import accelerators, short_name
from pulumi_holdfast.cli.spot_gpus.options import add_options
from pulumi_holdfast.cli.spot_gpus.plan import SpotRequest, command_in, plan_stack_file, render
from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config.reachability import walks
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.machines import machine_catalogue, regions, zones_of
from pulumi_holdfast.ladder.reachability.walk import Outcome
from pulumi_holdfast.stack_program import load_platform

if TYPE_CHECKING:
    from pathlib import Path

    from pulumi_holdfast.clouds import Platform
    from pulumi_holdfast.rehearsal.paths import Workspace

CLOUDS = ("aws", "azure", "gcp")
SOLD = [(cloud, accelerator) for cloud in CLOUDS for accelerator in accelerators(cloud)]


def request(
    cloud: str = "aws", accelerator: str = "a100", *, count: int = 8, region: str = ""
) -> SpotRequest:
    where = region or {"aws": "us-east-1", "azure": "eastus2", "gcp": "us-central1"}[cloud]
    return SpotRequest(
        cloud=cloud,
        accelerator=accelerator,
        count=count,
        region=where,
        allow_cidr="192.0.43.8/32",
        zones=zones_of(where)[:2] if cloud == "gcp" else (),
        project="acme-training" if cloud == "gcp" else "",
    )


def loaded(asked: SpotRequest, folder: Path) -> Platform:
    file = folder / "stack.yaml"
    file.write_text(render(asked, plan_stack_file(asked)), encoding="utf-8")
    return load_platform(file)


def refusal(asked: SpotRequest) -> str:
    try:
        plan_stack_file(asked)
    except ConfigError as refused:
        return str(refused)
    return ""


@cache
def judge(cloud: str) -> Draft202012Validator:
    return Draft202012Validator(stack_schema(cloud))


@settings(max_examples=40)
@given(sold=st.sampled_from(SOLD), count=st.integers(min_value=1, max_value=64), data=st.data())
def test_a_planned_stack_is_valid_proved_and_priced(
    sold: tuple[str, str], count: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cloud, accelerator = sold
    folder = tmp_path_factory.mktemp("planned")
    asked = request(
        cloud, accelerator, count=count, region=data.draw(st.sampled_from(sorted(regions(cloud))))
    )
    refused = refusal(asked)
    if refused:
        found = re.search(r"--region (\S+)\.$", refused)
        assert found is not None, f"only a region that sells none is refused, with one that does: {refused}"
        asked = request(cloud, accelerator, count=count, region=found[1])
    platform = loaded(asked, folder)
    summaries = pool_summaries(platform)
    ((_, way),) = walks(platform.namespaces, summaries)
    assert way.outcome is Outcome.ARRIVES, "the job reaches on-demand capacity"
    assert way.never_used == (), "it can run on spot, too"
    size = summaries[accelerator].largest.gpus
    assert count <= summaries[accelerator].max_nodes * size < count + size, (
        "all of them, on nodes that are needed"
    )
    cost = cost_of(platform).with_full_pools
    assert cost.low is not None, "a range says what it costs"
    assert cost.high is not None, "at most, too"
    text = (folder / "stack.yaml").read_text("utf-8")
    problems = [*judge(cloud).iter_errors(yaml.safe_load(text))]  # pyright: ignore[reportUnknownMemberType] - untyped in the package
    assert problems == [], "an editor marks nothing in it"
    assert command_in(text) == asked.words, "the file says what it is for"


def some_region(cloud: str, accelerator: str) -> str:
    """A region that sells an accelerator."""
    refused = refusal(request(cloud, accelerator))
    return refused.rpartition("--region ")[2].rstrip(".")


@pytest.mark.parametrize("cloud", CLOUDS)
def test_each_accelerator_on_spot_with_something_to_fall_back_to_is_offered(cloud: str) -> None:
    by_name: dict[str, set[str]] = {}
    for machine in machine_catalogue(cloud).values():
        if machine.accelerator and machine.gpus:
            ways = {"spot"} if machine.on_spot else set[str]()
            by_name.setdefault(short_name(machine.accelerator), set()).update(
                ways | ({"on-demand"} if machine.on_demand else set())
            )
    both = {name for name, ways in by_name.items() if len(ways) == 2}
    assert both <= set(accelerators(cloud)), "none of the table is left out"
    for name in both:
        pools = plan_stack_file(request(cloud, name, region=some_region(cloud, name)))["config"]
        text = str(pools)
        machines = [
            each for each in machine_catalogue(cloud).values() if f"'{each.name}'" in text and each.gpus
        ]
        assert {short_name(each.accelerator or "") for each in machines} == {name}, (
            "machines as asked, and no other"
        )
    for name in by_name.keys() - both:
        with pytest.raises(ConfigError, match="on spot only"):
            plan_stack_file(request(cloud, name))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, with a `pulumi` on PATH that records how it is called."""
    (tmp_path / "Pulumi.yaml").write_text("name: training\nruntime: python\nstackConfigDir: stacks\n")
    pulumi = tmp_path / "bin" / "pulumi"
    pulumi.parent.mkdir()
    pulumi.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/calls\n[ "$1" != "$FAILS" ]\n')
    pulumi.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pulumi.parent}:/usr/bin:/bin")
    monkeypatch.chdir(tmp_path)
    return tmp_path


AWS = ("up", "aws", "--spot-gpus", "a100", "--region", "us-west-2", "--allow-cidr", "192.0.43.8/32", "--yes")


def calls(project: Path) -> list[str]:
    return (project / "calls").read_text().splitlines() if (project / "calls").exists() else []


def test_it_writes_the_stack_shows_its_cost_and_brings_it_up(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(AWS) == 0, "one command"
    printed = capfd.readouterr().out
    assert "begin on a100-spot (spot, maxNodes 1), then on a100 (on-demand, maxNodes 1)." in printed, (
        "the plan"
    )
    assert re.search(r"up to [0-9.]+ USD an hour at most", printed), "and what it costs"
    assert calls(project) == ["stack select --create aws-a100", "up --stack aws-a100 --yes"], (
        "with the user's engine"
    )


def test_the_same_command_goes_on_with_the_edited_file(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert command_line.main(AWS) == 0, "the first run"
    file = project / "stacks" / "Pulumi.aws-a100.yaml"
    edited = file.read_text("utf-8").replace("returnAfter: 1h", "returnAfter: 2h")
    file.write_text(edited, "utf-8")
    capfd.readouterr()
    assert command_line.main(["up", "aws", "--spot-gpus", "a100", "--yes"]) == 0, "nothing is asked again"
    assert "exists, and is not changed" in capfd.readouterr().out, "the user knows which file it was"
    assert file.read_text("utf-8") == edited, "it is the user's"


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--count", "16"], "--count: got 16, for a stack file that was written for 8"),
        (
            ["--region", "us-east-1"],
            "--region: got us-east-1, for a stack file that was written for us-west-2",
        ),
    ],
)
def test_a_request_that_differs_from_the_file_is_refused_with_the_fix(
    project: Path, capfd: pytest.CaptureFixture[str], more: list[str], said: str
) -> None:
    command_line.main([*AWS, "--count", "8"])
    before = calls(project)
    capfd.readouterr()
    assert command_line.main(["up", "aws", "--spot-gpus", "a100", "--yes", *more]) == 1, (
        "not silently another stack"
    )
    printed = capfd.readouterr().err
    assert said in printed, "field and values"
    assert "edit " in printed, "and how to change it"
    assert calls(project) == before, "nothing is brought up"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["up", "aws", "--spot-gpus", "a100"], ["--yes"]),
        (["up", "aws", "--spot-gpus", "a100", "--yes"], ["--region", "--allow-cidr"]),
        (["up", "gcp", "--spot-gpus", "l4", "--yes"], ["--region", "--allow-cidr", "--zones", "--project"]),
        (["up", "ibm", "--spot-gpus", "a100", "--yes"], ["STACK: got ibm"]),
        ([*AWS, "--count", "0"], ["--count"]),
        ([*AWS, "--zones", "us-west-2a"], ["--zones"]),
        ([*AWS[:5], "mars-1", *AWS[6:]], ["--region: got mars-1", "Write --region "]),
        (["up", "azure", "--spot-gpus", "h1000", "--yes"], ["--spot-gpus", "Write --spot-gpus h100."]),
    ],
)
def test_without_a_terminal_what_is_missing_or_wrong_is_named(
    project: Path, capfd: pytest.CaptureFixture[str], words: list[str], said: list[str]
) -> None:
    assert command_line.main(words) == 1, "it refuses"
    printed = capfd.readouterr().err
    assert [each for each in said if each not in printed] == [], "every flag in one run"
    assert not (project / "stacks").exists(), "before anything is written"
    assert calls(project) == [], "or made"


def test_on_a_terminal_it_asks_for_what_no_flag_says(project: Path) -> None:
    answers = iter(["", "192.0.43.8/32", "us-central1-a,us-central1-c", "acme-training"])
    asked: list[str] = []
    parser = argparse.ArgumentParser()
    parser.add_argument("stack")
    add_options(parser)

    def answer(question: str) -> str:
        asked.append(question)
        return next(answers)

    assert prepare(parser.parse_args(["gcp", "--spot-gpus", "l4"]), answer) == "gcp-l4", "the stack"
    assert "[us-central1]" in asked[0], "an empty answer takes what the question shows"
    assert "g2-standard-96" in asked[2], "the zones that sell this machine"
    written = command_in((project / "stacks" / "Pulumi.gcp-l4.yaml").read_text("utf-8")) or []
    assert "us-central1-a,us-central1-c" in written, "the answers are in the file"


def test_with_rehearse_it_needs_neither_pulumi_nor_a_terminal(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rehearsed: list[str] = []

    def rehearse(stack: str, workspace: Workspace) -> None:
        rehearsed.append(stack)

    monkeypatch.setattr("pulumi_holdfast.rehearsal.commands.rehearse", rehearse)
    assert command_line.main([*AWS[:-1], "--rehearse"]) == 0, "no account"
    assert rehearsed == ["aws-a100"], "the stack that it wrote"
    assert calls(project) == [], "and no update of a cloud"


def test_a_stack_file_of_other_origin_is_not_taken_over(
    project: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "stacks").mkdir()
    (project / "stacks" / "Pulumi.aws-a100.yaml").write_text("config: {}\n")
    assert command_line.main(AWS) == 1, "someone wrote it"
    assert "pulumi up -s aws-a100" in capfd.readouterr().err, "and can use it"


def test_outside_of_a_project_it_names_init(
    project: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (project / "Pulumi.yaml").unlink()
    assert command_line.main(AWS) == 1, "a stack needs a program"
    assert "Run `holdfast init aws-dev`" in capfd.readouterr().err, "the first command"


def test_a_failure_of_pulumi_is_that_of_the_command(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILS", "stack")
    assert command_line.main(AWS) == 1, "a script sees it"
    assert calls(project) == ["stack select --create aws-a100"], "no update of another stack"
