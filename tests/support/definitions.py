"""Kinds that an API server is to serve."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import yaml

from holdfast.components.fallback_policy.definition import DEFINITION, definition_spec
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from pathlib import Path

    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

KIND = "CustomResourceDefinition"
API_VERSION = "apiextensions.k8s.io/v1"


def define(client: KubeClient, definition: Json) -> None:
    """Define a kind, and wait until the API server serves it."""
    client.apply(definition, field_manager="tests")
    wait_until_served(client, str(obj(definition["metadata"])["name"]))


def define_all(client: KubeClient, folder: Path) -> None:
    """Define the kinds whose definitions are in a folder, a file for each."""
    for path in sorted(folder.glob("*.yaml")):
        define(client, read_definition(path))


def define_fallback_policies(client: KubeClient) -> None:
    """Define the kind FallbackPolicy."""
    define(
        client,
        {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": DEFINITION},
            "spec": definition_spec(),
        },
    )


def read_definition(path: Path) -> Json:
    """What is in a file."""
    # Karpenter's definitions are long: the C loader takes a tenth of the time.
    return cast("Json", yaml.load(path.read_text(encoding="utf-8"), yaml.CSafeLoader))


def wait_until_served(client: KubeClient, name: str) -> None:
    """Wait until the API server serves the kind that a definition of this name defines."""
    client.wait_for(
        API_VERSION,
        KIND,
        name,
        timeout_seconds=60,
        condition=_is_established,
        what=f"{name} is served",
    )


def _is_established(definition: Json | None) -> bool:
    conditions = objects(obj((definition or {}).get("status")).get("conditions"))
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)
