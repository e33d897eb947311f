"""The program that the engine runs, and the same configuration as tools outside a run see it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, cast

import pulumi
import yaml

from holdfast.infra.clouds import cloud_of
from holdfast.infra.config.errors import format_value
from holdfast.infra.config.loader import PLATFORM, load_yaml
from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.infra.clouds import Cloud, Platform, Settings
    from holdfast.scheduling.json import Json, JsonValue


def run(*, needs_way_in: bool = False) -> None:
    """Compose the stack that is selected.

    Raises pulumi.RunError, which the engine shows as one message, for a configuration that cannot be used, and with
    `needs_way_in` where a command is missing by which clients get into the cloud's cluster, or where a cluster that is
    there does not answer; nothing is registered then.
    """
    try:
        cloud, document = cloud_of(_configured())
        settings, stack = _configured_settings(cloud), pulumi.get_stack()
        if needs_way_in:
            _refuse(cloud.missing_command())
            _refuse(cloud.out_of_reach(document, settings, stack))
        cloud.build(document, settings, stack)
    except ConfigError as error:
        raise pulumi.RunError(str(error)) from None


def load_platform(stack_file: Path) -> Platform:
    """Read the platform of a stack file without running anything.

    Raises ConfigError with every problem, the unreadable file included.
    """
    config = _in_file(stack_file)
    cloud, document = cloud_of(config.get(PLATFORM))
    return cloud.read(document, {key: _text(config.get(key)) for key in cloud.settings})


def provider_packages(platform: Platform) -> tuple[str, ...]:
    """The Pulumi providers which a platform's stack uses."""
    return cloud_of({"cloud": platform.cloud})[0].provider_packages


def _refuse(problem: Problem | None) -> None:
    if problem is not None:
        raise ConfigError([problem])


def _configured() -> JsonValue:
    namespace, _, key = PLATFORM.partition(":")
    try:
        return cast("JsonValue", pulumi.Config(namespace).get_object(key))
    except pulumi.ConfigTypeError:
        raise ConfigError([_not_structured(pulumi.Config(namespace).get(key))]) from None


def _configured_settings(cloud: Cloud) -> Settings:
    return {key: pulumi.Config(key.partition(":")[0]).get(key.partition(":")[2]) for key in cloud.settings}


def _text(value: JsonValue) -> str | None:
    return None if value is None else str(value)


def _in_file(stack_file: Path) -> Json:
    try:
        # As the engine sees it, for which a date is a text and every key is one.
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
        fix="Mend the file, or name another stack: stacks/ holds one file for each.",
    )


def _not_structured(text: str | None) -> Problem:
    return Problem(
        field=PLATFORM,
        value=format_value(text),
        allowed="a mapping",
        fix="Write it as nested YAML in the stack file; `pulumi config set` needs --path for single fields.",
    )
