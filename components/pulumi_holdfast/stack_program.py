"""Runs the Pulumi program, and parses stack files for tools that run outside the engine."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING, Final, cast

import pulumi
import yaml

from pulumi_holdfast.clouds import cloud_of, pool_summaries
from pulumi_holdfast.config.cidrs import placeholder_address_problems
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM, load_yaml
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pulumi_holdfast.clouds import AnyCloud, Platform, Settings
    from pulumi_holdfast.config.preflight import QuotaUse, Runner
    from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
    from pulumi_holdfast.ladder.json import Json, JsonValue

#: What a preview shows without access to the cluster. The Kubernetes provider then compares inputs with the state.
NOT_COMPARED: Final = (
    "An update refuses this. This preview continues: it compares the objects in the cluster with the state of the last update, "
    "not with the cluster itself, and the API server checks none of them."
)


def main() -> None:
    """Make the training cluster of the selected stack in a process of its own: the program of this repository, and of projects from `templates/`."""
    # The process ends in seconds, and its garbage with it: to look for garbage takes a tenth of its time.
    gc.disable()
    run(check_access=True)


def run(*, check_access: bool = False) -> None:
    """Make the training cluster of the selected stack, and export its outputs.

    Raises pulumi.RunError, which the engine shows as one message, for an invalid configuration. With `check_access` it
    also raises for addresses that stand for the user's own, and, unless this is a preview, if a credential plugin is missing
    or if the API server of an existing cluster does not answer. Nothing is registered then. Rehearsals run without it.
    """
    try:
        cloud, document = cloud_of(_configured())
        settings, stack = _configured_settings(cloud), pulumi.get_stack()
        if check_access:
            _raise(*placeholder_address_problems(document, PLATFORM))
            _refuse_or_warn(cloud.missing_command())
            _refuse_or_warn(cloud.unreachable_api_server(document, settings, stack))
        outputs = cloud.build(document, settings, stack, check_budget)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None
    if outputs is not None:
        export(outputs)


def export(outputs: ClusterOutputs) -> None:
    """Export the outputs of a training cluster as those of the stack."""
    for name, value in outputs.by_name().items():
        pulumi.export(name, value)


def check_budget(platform: Platform) -> None:
    """Check that the stack costs no more than its budget. Raises ConfigError. A preview prints the cost."""
    from pulumi_holdfast.cost import budget_problems, stack_cost, summary

    cost = stack_cost(platform, pool_summaries(platform))
    _raise(*budget_problems(None if platform.cloud == "local" else platform.budget, cost))
    if pulumi.runtime.is_dry_run():
        pulumi.log.info(summary(cost))


def load_platform(stack_file: Path) -> Platform:
    """Parse a stack file without running the engine.

    Raises ConfigError with every problem, including a file that cannot be read.
    """
    cloud, document, settings = _cloud_in(stack_file)
    return cloud.read(document, settings)


def quota_uses(stack_file: Path, stack: str, runner: Runner) -> Sequence[QuotaUse]:
    """Compare the quotas of a stack's account with what the stack asks, without running the engine. Raises ConfigError."""
    cloud, document, settings = _cloud_in(stack_file)
    if cloud.quota_uses is None:
        raise ConfigError.of(
            field=stack,
            value=f"a stack on {document.get('cloud')}",
            allowed="a stack on a cloud with quotas: aws, azure or gcp",
            fix="Select another stack.",
        )
    return cloud.quota_uses(document, settings, stack, runner)


def _cloud_in(stack_file: Path) -> tuple[AnyCloud, Json, Settings]:
    config = _in_file(stack_file)
    cloud, document = cloud_of(config.get(PLATFORM))
    return cloud, document, {key: _text(config.get(key)) for key in cloud.settings}


def provider_packages(platform: Platform) -> tuple[str, ...]:
    """The Pulumi providers that a platform's stack uses."""
    return cloud_of({"cloud": platform.cloud})[0].provider_packages


def _raise(*problems: Problem) -> None:
    if problems:
        raise ConfigError(problems)


def _refuse_or_warn(problem: Problem | None) -> None:
    """Refuse an update that cannot reach the cluster; a preview compares what it can without it."""
    if problem is None:
        return
    if not pulumi.runtime.is_dry_run():
        raise ConfigError([problem])
    pulumi.log.warn(f"{problem} {NOT_COMPARED}")


def _configured() -> JsonValue:
    namespace, _, key = PLATFORM.partition(":")
    try:
        return cast("JsonValue", pulumi.Config(namespace).get_object(key))
    except pulumi.ConfigTypeError:
        raise ConfigError([_not_structured(pulumi.Config(namespace).get(key))]) from None


def _configured_settings(cloud: AnyCloud) -> Settings:
    return {key: pulumi.Config(key.partition(":")[0]).get(key.partition(":")[2]) for key in cloud.settings}


def _text(value: JsonValue) -> str | None:
    """A value as `pulumi.Config` returns it: structured ones as JSON."""
    return None if value is None else json.dumps(value) if isinstance(value, dict | list) else str(value)


def _in_file(stack_file: Path) -> Json:
    try:
        # The engine reads dates and keys as text.
        content: JsonValue = json.loads(json.dumps(load_yaml(stack_file.read_text("utf-8")), default=str))
    except OSError as error:
        raise ConfigError([_unreadable(stack_file, error.strerror or "no file")]) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError([_unreadable(stack_file, " ".join(str(error).split()))]) from None
    config = content.get("config") if isinstance(content, dict) else None
    return config if isinstance(config, dict) else {}


def _unreadable(stack_file: Path, reason: str) -> Problem:
    return Problem(
        field=str(stack_file),
        value=f"a file that cannot be read ({reason})",
        allowed=f"a YAML file with config: {{{PLATFORM}: …}}",
        fix="Correct the file, or select another stack: stacks/ has one file for each.",
    )


def _not_structured(text: str | None) -> Problem:
    return Problem(
        field=PLATFORM,
        value=format_value(text),
        allowed="a mapping",
        fix="Write nested YAML in the stack file; `pulumi config set` needs --path for single fields.",
    )
