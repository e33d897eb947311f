"""Judges commands of the AWS CLI by botocore's models, from which the CLI makes its commands."""

import gzip
import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import distribution
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import Json
from tests.support.json_objects import obj, objects

# The CLI has its own name for the operations of this service.
_SERVICES: Final = {"s3api": "s3"}

#: Options of every command, which are no parameters of an operation.
_GLOBAL: Final = {"region", "query", "output"}


def option_problems(words: Sequence[str]) -> Iterator[str]:
    """Yield what is wrong with the options of a command: unknown ones and missing ones."""
    program, service, operation, *rest = words
    assert program == "aws", "the command line of the cloud"
    shape = obj(_operations(_SERVICES.get(service, service))[operation])
    given = {word.removeprefix("--") for word in rest if word.startswith("--")} - _GLOBAL
    yield from (f"--{name}: unknown" for name in given - {_kebab(name) for name in obj(shape["members"])})
    required = {_kebab(str(name)) for name in objects(shape.get("required"))}
    yield from (f"--{name}: missing" for name in required - given)


@cache
def _operations(service: str) -> Json:
    """The operations of a service by their names on the command line, each with its input."""
    folder = Path(str(distribution("botocore").locate_file(f"botocore/data/{service}")))
    (file, *_) = sorted(folder.glob("*/service-2.json.gz"), reverse=True)
    model: Json = json.loads(gzip.decompress(file.read_bytes()))
    shapes = obj(model["shapes"])
    return {
        _kebab(name): obj(shapes[str(obj(obj(operation)["input"])["shape"])])
        for name, operation in obj(model["operations"]).items()
        if "input" in obj(operation)
    }


def _kebab(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()
