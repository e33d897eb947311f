"""`holdfast up CLOUD --spot-gpus ACCELERATOR`: writes a stack file, shows what it costs, and runs `pulumi up` on it."""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from pulumi_holdfast.cli.cost.command import cost_of, region_of
from pulumi_holdfast.cli.spot_gpus.machines import select
from pulumi_holdfast.cli.spot_gpus.options import MOST_GPUS, add_options
from pulumi_holdfast.cli.spot_gpus.plan import SpotRequest, command_in, plan_stack_file, render
from pulumi_holdfast.cli.template.files import CLOUDS
from pulumi_holdfast.clouds import pool_summaries
from pulumi_holdfast.config.paths import find_project, stack_file
from pulumi_holdfast.config.reachability import reachability_problems
from pulumi_holdfast.cost.report import cost_report
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.stack_program import load_platform

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulumi_holdfast.clouds import Platform

#: Returns the user's answer to a question; None where there is no terminal.
Ask: TypeAlias = Callable[[str], str] | None

_ONLY_GCP: Final = ("zones", "project")
_EXAMPLES: Final[Mapping[str, Mapping[str, str]]] = {
    "aws": {"region": "us-west-2"},
    "azure": {"region": "eastus2"},
    "gcp": {"region": "us-central1", "zones": "us-central1-a,us-central1-b", "project": "my-project"},
}
_MY_ADDRESS: Final = "198.51.100.7/32"


def prepare(parsed: argparse.Namespace, ask: Ask = None) -> str:
    """Write the stack file unless it exists, print the plan and its cost, and return the name of the stack.

    Raises ConfigError for what is missing where `ask` is None, and for a stack file that was written for something else.
    """
    cloud, accelerator = str(parsed.stack), str(parsed.spot_gpus)
    if problems := tuple(_problems(cloud, parsed, ask)):
        raise ConfigError(problems)
    stack = f"{cloud}-{accelerator}"
    file = stack_file(stack)
    if file.is_file():
        _compare(file, parsed)
        print(f"{file}: exists, and is not changed.")
        platform = load_platform(file)
    else:
        request = _request(cloud, accelerator, parsed, ask)
        text = _with_schema(render(request, plan_stack_file(request)), file, cloud)
        platform = _checked(text)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        print(f"{file}: written. Edit it as needed.")
    for line in _plan(platform):
        print(line)
    return stack


def bring_up(stack: str, *, yes: bool) -> int:
    """Select or make the stack, and run `pulumi up`, which shows its plan and asks; return its exit code."""
    for words in (
        ("pulumi", "stack", "select", "--create", stack),
        ("pulumi", "up", "--stack", stack, *(("--yes",) if yes else ())),
    ):
        ended = subprocess.run(words, cwd=find_project(), check=False)
        if ended.returncode != 0:
            return ended.returncode
    return 0


def terminal() -> Ask:
    """How to ask the user; None without a terminal."""
    return input if sys.stdin.isatty() else None


def _problems(cloud: str, parsed: argparse.Namespace, ask: Ask) -> Iterator[Problem]:
    if cloud not in CLOUDS:
        yield _problem("STACK", cloud, ", ".join(CLOUDS), "Write `holdfast up aws --spot-gpus a100`.")
    if parsed.count is not None and parsed.count < 1:
        yield _problem("--count", str(parsed.count), "a number of GPUs, 1 or more", "Write --count 8.")
    for name in _ONLY_GCP:
        if cloud != "gcp" and (value := getattr(parsed, name)) is not None:
            yield _problem(f"--{name}", str(value), "nothing on other clouds than gcp", "Leave it out.")
    if find_project() is None:
        yield _problem(
            "folder",
            f"{Path.cwd()}, which is in no project",
            "a folder with Pulumi.yaml, or one below it",
            f"Run `holdfast init {cloud if cloud in CLOUDS else 'aws'}-dev`, and this command in its folder.",
        )
    if parsed.rehearse:
        return
    if shutil.which("pulumi") is None:
        fix = "Install it, or add `--rehearse`."
        yield _problem("pulumi", "no such command", "Pulumi's command line", fix)
    if ask is None and not parsed.yes:
        fix = "Add `--yes` or `--rehearse`."
        yield _problem("--yes", "nothing, and no terminal to ask at", "--yes", fix)


def _request(cloud: str, accelerator: str, parsed: argparse.Namespace, ask: Ask) -> SpotRequest:
    examples = _EXAMPLES[cloud]
    count = MOST_GPUS if parsed.count is None else int(parsed.count)
    missing: list[Problem] = []

    def value(option: str, question: str, *, example: str, default: str = "") -> str:
        given = cast("str | None", getattr(parsed, option.replace("-", "_")))
        if given is None and ask is not None:
            given = ask(f"{question}{f' [{default}]' if default else ''}: ").strip() or default
        if not given:
            fix = f"Add `--{option} {example}`."
            missing.append(_problem(f"--{option}", "nothing", question[:1].lower() + question[1:], fix))
        return given or ""

    region = value("region", f"Region of {cloud}", example=examples["region"], default=examples["region"])
    # An accelerator that the region does not sell is said before the next question.
    chosen = select(cloud, accelerator, count, region or examples["region"])
    allow = value(
        "allow-cidr",
        "Addresses that may reach the API server (`curl -s https://checkip.amazonaws.com` prints yours; append /32)",
        example=_MY_ADDRESS,
    )
    zones, project = "", ""
    if cloud == "gcp":
        machine = chosen.spot[0].name
        zones = value(
            "zones",
            f"Zones that sell {machine} (`gcloud compute machine-types list --filter name={machine}` lists them), with commas",
            example=examples["zones"],
        )
        project = value(
            "project", "Project (`gcloud projects list` shows the IDs)", example=examples["project"]
        )
    if missing:
        raise ConfigError(missing)
    return SpotRequest(
        cloud=cloud,
        accelerator=accelerator,
        count=count,
        region=region,
        allow_cidr=allow,
        zones=tuple(each.strip() for each in zones.split(",") if each.strip()),
        project=project,
    )


def _compare(file: Path, parsed: argparse.Namespace) -> None:
    """Refuse a request that differs from the one for which the file was written."""
    words = command_in(file.read_text("utf-8"))
    if words is None:
        raise ConfigError.of(
            field=str(file),
            value="a stack file that this command did not write",
            allowed="a name that no stack has, or the file that this command wrote",
            fix=f"Run `pulumi up -s {file.stem.removeprefix('Pulumi.')}` to use it, or rename it.",
        )
    parser = argparse.ArgumentParser()
    parser.add_argument("stack")
    add_options(parser)
    before = vars(parser.parse_args(list(words[1:])))
    differing = [
        _problem(
            f"--{option.replace('_', '-')}",
            f"{given}, for a stack file that was written for {before[option]}",
            f"{before[option]}, or nothing",
            f"Leave it out and edit {file}, or remove that file if the stack does not exist yet.",
        )
        for option in ("count", "region", "allow_cidr", "zones", "project")
        if (given := getattr(parsed, option)) is not None and given != before[option]
    ]
    if differing:
        raise ConfigError(differing)


def _checked(text: str) -> Platform:
    """The platform of a planned stack file. Raises ConfigError if it is not valid, or if its jobs cannot fall back."""
    with tempfile.NamedTemporaryFile("w", suffix=".yaml", encoding="utf-8") as planned:
        planned.write(text)
        planned.flush()
        platform = load_platform(Path(planned.name))
    if problems := tuple(reachability_problems(platform.namespaces, pool_summaries(platform))):
        raise ConfigError(problems)
    return platform


def _with_schema(text: str, file: Path, cloud: str) -> str:
    """The text with the editor schema, where the project has it."""
    schema = f"schema/{cloud}.json"
    has_one = (file.parent / schema).is_file()
    return f"# yaml-language-server: $schema={schema}\n{text}" if has_one else text


def _plan(platform: Platform) -> Iterator[str]:
    summaries = pool_summaries(platform)
    for namespace in platform.namespaces:
        tiers = [
            f"{tier.pool} ({summaries[tier.pool].capacity.value}, maxNodes {summaries[tier.pool].max_nodes})"
            for tier in namespace.ladder
        ]
        yield f"Jobs in the namespace {namespace.name} begin on {', then on '.join(tiers)}."
    yield ""
    yield from cost_report(cost_of(platform), region_of(platform))
    yield ""


def _problem(field: str, value: str, allowed: str, fix: str) -> Problem:
    return Problem(field=field, value=value, allowed=allowed, fix=fix)
