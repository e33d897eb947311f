"""The recorded sample of drawn cases with the scheduler's answers, which unit tests read."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.ladder.json import Json
from tests.soak.filters.cases import Case
from tests.support.json_objects import obj, objects

RECORDED: Final = Path(__file__).with_name("recorded.jsonl")


def recorded() -> Iterator[tuple[Case, Mapping[str, bool]]]:
    """Yield each recorded case, with what each filter answered."""
    for line in RECORDED.read_text(encoding="utf-8").splitlines():
        read = cast("Json", json.loads(line))
        asked = obj(read["question"])
        case = Case(pod=obj(asked["pod"]), node=obj(asked["node"]), volumes=tuple(objects(asked["volumes"])))
        yield case, cast("Mapping[str, bool]", obj(read["answer"]))


def record(drawn: Sequence[Case], answers: Sequence[Mapping[str, bool]]) -> None:
    """Replace the recorded sample."""
    lines = (
        json.dumps({"question": case.question, "answer": answer}, separators=(",", ":"))
        for case, answer in zip(drawn, answers, strict=True)
    )
    RECORDED.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
