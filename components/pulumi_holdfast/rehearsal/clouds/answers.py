"""What a rehearsed program's functions return: answers from a file, before those of the simulated cloud.

The file maps a function's token to its result, or to a list of results that apply to calls with certain arguments:

    aws:ec2/getAmi:getAmi: {id: ami-0123456789abcdef0}
    aws:ssm/getParameter:getParameter:
      - {arguments: {name: /team/vpc}, result: {value: vpc-0123}}
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.rehearsal.engine.settings import read_yaml
from pulumi_holdfast.rehearsal.errors import RehearsalError

_ARGUMENTS: Final = "arguments"
_RESULT: Final = "result"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of a function for each call that has at least these arguments."""

    arguments: Json
    result: Json


@dataclass(frozen=True)
class Answers:
    """The answers of a file, by the function's token."""

    by_token: Mapping[str, tuple[Answer, ...]]

    @classmethod
    def read(cls, file: Path) -> "Answers":
        """Return the answers in a file. Raises RehearsalError if it is missing or holds something else."""
        if not file.is_file():
            raise RehearsalError(f"--answers {file}: the file does not exist; name a YAML file")
        return cls({token: _answers(file, token, value) for token, value in read_yaml(file).items()})

    def find(self, token: str, arguments: Json) -> Json | None:
        """Return the result of a call: of the first answer that applies, None if there is none."""
        for each in self.by_token.get(token, ()):
            if all(arguments.get(name) == value for name, value in each.arguments.items()):
                return each.result
        return None


def _answers(file: Path, token: str, value: JsonValue) -> tuple[Answer, ...]:
    if isinstance(value, Mapping):
        return (Answer(arguments={}, result=value),)
    if not isinstance(value, list) or not all(
        isinstance(each, Mapping) and set(each) <= {_ARGUMENTS, _RESULT} and _RESULT in each for each in value
    ):
        raise RehearsalError(
            f"--answers {file}: {token} is no result; write a mapping with the result's properties, or a list of "
            f"{{{_ARGUMENTS}: {{…}}, {_RESULT}: {{…}}}}"
        )
    found = [mapping(each) for each in value]
    return tuple(
        Answer(arguments=mapping(each.get(_ARGUMENTS)), result=mapping(each.get(_RESULT))) for each in found
    )


#: A rehearsal without a file.
NO_ANSWERS: Final = Answers({})


def how_to_answer(token: str, arguments: Json) -> str:
    """Return the line of a file that answers a call."""
    given = ", ".join(f"{name}: {value}" for name, value in arguments.items())
    return f"`{token}: [{{{_ARGUMENTS}: {{{given}}}, {_RESULT}: {{…}}}}]`"
