"""Whole applies: the real Terraform provider creates what a stack registers, in an account that others wrote.

Under mocks a program takes a made-up text from another resource; here that text is a reference to the resource.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from tests.soak.judges.field_changes import named
from tests.soak.judges.plans import Document, Inputs, Planner
from tests.soak.judges.provider_schema import ADDRESS, terraform_type
from tests.support.fakes.pulumi_engine import Recorded, outputs_of

_NOT_IN_A_NAME: Final = r"(?<![\w-]){}(?![\w-])"


@dataclass(frozen=True, kw_only=True)
class Applied:
    """How an apply ended: the resources created, the refused ones, and the fields that a second plan would change."""

    created: int
    refused: Mapping[str, str]
    changed: Mapping[str, Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class Target:
    """An account: the `settings` of the provider and the `environment` that lead there, and what is there before.

    `beside` are resources that are there before, by type and name, and `known` the expressions for texts of theirs.
    """

    settings: Inputs
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    beside: Mapping[str, Mapping[str, Document]] = field(default_factory=dict[str, Mapping[str, Document]])
    known: Mapping[str, str] = field(default_factory=dict[str, str])


class Applier(Planner):
    """Runs `terraform apply` with the provider of a cloud in an account, and a second plan."""

    def __init__(self, cloud: str, binary: Path, folder: Path, target: Target) -> None:
        super().__init__(cloud, binary, folder)
        self._settings = {**self._settings, **target.settings}
        self._environment = {**self._environment, **target.environment}
        self._target = target

    def apply(self, resources: Sequence[Recorded]) -> Applied:
        """Create the resources in an empty state."""
        self._write({"resource": self._bodies(resources)})
        (self._folder / "terraform.tfstate").unlink(missing_ok=True)
        lines = list(self._lines("apply", "-auto-approve", "-parallelism=20"))
        refused = dict(_errors(lines, resources))
        created = {_number(line) for line in lines if line.get("type") == "apply_complete"} - {None}
        again = dict(_errors(self._lines("plan", "-out=plan"), resources))
        changed = {} if again else dict(self._changed(resources, created))
        return Applied(created=len(created), refused={**again, **refused}, changed=changed)

    def _bodies(self, resources: Sequence[Recorded]) -> Mapping[str, Mapping[str, Document]]:
        bodies = {kind: dict(each) for kind, each in self._target.beside.items()}
        titles = {one.name: f"{terraform_type(one.type)}.r{number}" for number, one in enumerate(resources)}
        for number, one in enumerate(resources):
            body = self.schema.body(one.type, named(one))
            references = {**self._target.known, **self._references(one, resources, titles)}
            body = cast("Document", _referring(body, references))
            body["depends_on"] = [titles[name] for name in sorted(one.depends_on & titles.keys())]
            bodies.setdefault(terraform_type(one.type), {})[f"r{number}"] = body
        return bodies

    def _references(
        self, one: Recorded, resources: Iterable[Recorded], titles: Mapping[str, str]
    ) -> dict[str, str]:
        """Return an expression for each made-up text of the other resources; those it depends on come last, and win."""
        others = sorted(
            (each for each in resources if each is not one), key=lambda each: each.name in one.depends_on
        )
        made: dict[str, str] = {}
        for each in others:
            identity, outputs = outputs_of(each.type, each.name, dict(each.inputs))
            given = {text for _, text in _texts(each.inputs, ())}
            for path, text in [(("id",), identity), *_texts(outputs, ())]:
                place = self.schema.place(each.type, path)
                if text not in given and place is not None:
                    made[text] = f"${{{titles[each.name]}.{place}}}"
        return made

    def _lines(self, *command: str) -> Iterator[Mapping[str, object]]:
        done = self._terraform(*command, "-input=false", "-lock=false", "-json")
        yield from (json.loads(line) for line in done.stdout.splitlines() if line.startswith("{"))

    def _changed(
        self, resources: Sequence[Recorded], created: set[int | None]
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Yield the fields of the created resources that a second plan changes."""
        plan = json.loads(self._run("show", "-json", "plan"))
        for one in plan["resource_changes"]:
            number = int(one["name"].removeprefix("r")) if one["name"][1:].isdecimal() else None
            if number in created and number is not None and one["change"]["actions"] != ["no-op"]:
                before, after = (cast("Inputs", one["change"][side] or {}) for side in ("before", "after"))
                names = sorted(name for name in after if before.get(name) != after[name])
                yield resources[number].name, [f"{one['type']} {name}" for name in names]


def _number(line: Mapping[str, object]) -> int | None:
    """Return the number of the resource that a line of `terraform` is about, None for one beside the stack."""
    hook = cast("Mapping[str, Mapping[str, str]]", line.get("hook") or {})
    found = ADDRESS.search(hook["resource"]["addr"]) if hook else None
    return int(found[1]) if found else None


def _errors(
    lines: Iterable[Mapping[str, object]], resources: Sequence[Recorded]
) -> Iterator[tuple[str, str]]:
    for line in lines:
        if line.get("@level") == "error" and "diagnostic" in line:
            diagnostic = cast("Mapping[str, object]", line["diagnostic"])
            snippet = cast("Mapping[str, object]", diagnostic.get("snippet") or {})
            found = ADDRESS.search(f"{diagnostic.get('address', '')} {snippet.get('context', '')}")
            message = f"{diagnostic['summary']}: {diagnostic.get('detail', '')}"
            name = resources[int(found[1])] if found else None
            yield (f"{name.type} {name.name}" if name else "the stack"), " ".join(message.split())


def _texts(value: object, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the texts in a value with the names of the fields that lead to them."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, dict):
        for name, one in cast("dict[str, object]", value).items():
            yield from _texts(one, (*path, name))
    elif isinstance(value, list):
        for one in cast("list[object]", value):
            yield from _texts(one, path)


def _referring(value: object, references: Mapping[str, str]) -> object:
    """Return a value in which each made-up text is a reference."""
    found = "|".join(re.escape(one) for one in sorted(references, key=len, reverse=True) if one)
    pattern = re.compile(_NOT_IN_A_NAME.format(f"({found})")) if found else None

    def replaced(one: object) -> object:
        if isinstance(one, str):
            return pattern.sub(lambda match: references[match[0]], one) if pattern else one
        if isinstance(one, dict):
            return {name: replaced(each) for name, each in cast("dict[str, object]", one).items()}
        return [replaced(each) for each in cast("list[object]", one)] if isinstance(one, list) else one

    return replaced(value)
