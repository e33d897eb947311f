"""Looking into JSON documents whose shape a test knows and the type checker does not."""

from collections.abc import Sequence
from typing import cast

from pulumi_holdfast.ladder.json import Json


def objects(value: object) -> Sequence[Json]:
    """A list of JSON objects, empty where there is none."""
    return cast("Sequence[Json]", value or [])


def obj(value: object) -> Json:
    """A JSON object, empty where there is none."""
    return cast("Json", value or {})
