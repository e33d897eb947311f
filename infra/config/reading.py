"""Reads a document into a model, or says everything that is wrong with it."""

import json
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from pydantic import ValidationError

from holdfast.infra.config.problems import shape_problems
from holdfast.infra.config.section import Section
from holdfast.scheduling.errors import ConfigError, Problem
from holdfast.scheduling.json import Json

#: The key of the one structured value in a stack file; the root of every path in a refusal.
PLATFORM: Final = "holdfast:platform"

P = TypeVar("P", bound=Section)


def read_section(model: type[P], document: Json, rules: Callable[[Json], Iterable[Problem]]) -> P:
    """Read a document as a `model` that also keeps `rules`, which get the document as it was written.

    Raises ConfigError with every problem: of single values, and across fields as far as these could be read.
    """
    problems: list[Problem] = []
    read: P | None = None
    try:
        # Through JSON, where the strict parser takes a list for a tuple and a text for a member, and nothing else.
        read = model.model_validate_json(json.dumps(document))
    except ValidationError as error:
        problems.extend(shape_problems(model, error, PLATFORM))
    problems.extend(rules(document))
    if read is None or problems:
        raise ConfigError(problems)
    return read
