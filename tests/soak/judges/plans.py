"""What the Terraform providers that pulumi-aws and pulumi-gcp wrap plan: new resources, and a change of each field.

`terraform` runs a provider without an account. A plan of new resources calls no API; a plan of changes begins with the
planned resources, where a made-up value replaces what only the cloud knows.
"""

import json
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, cast

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.judges.provider_schema import ADDRESS, Block, ProviderSchema, terraform_type

Inputs: TypeAlias = "Mapping[str, object]"
Document: TypeAlias = "dict[str, object]"

#: Cloud → the provider's name in the registry, its local name, and what it needs to plan without an account.
PROVIDERS: Final[Mapping[str, tuple[str, str, Inputs]]] = {
    "aws": (
        "hashicorp/aws",
        "aws",
        {
            "region": "us-west-2",
            "access_key": "none",
            "secret_key": "none",
            "skip_credentials_validation": True,
            "skip_metadata_api_check": True,
            "skip_region_validation": True,
            "skip_requesting_account_id": True,
        },
    ),
    "gcp": (
        "hashicorp/google-beta",
        "google",
        {"project": "holdfast", "region": "us-central1", "access_token": "none"},
    ),
}
#: A resource whose id no plan knows.
_PENDING: Final[Mapping[str, object]] = {"terraform_data": {"pending": {}}}
_STATE_VERSION: Final = 4
_MADE_UP: Final[Mapping[str, object]] = {"string": "made-up", "number": 0, "bool": False}


@dataclass(frozen=True, kw_only=True)
class Planned:
    """What a provider plans for a resource: the actions, its values, and which of them only the cloud knows."""

    actions: Sequence[str]
    after: Mapping[str, object]
    unknown: Mapping[str, object]

    @property
    def is_replaced(self) -> bool:
        """Whether the resource is deleted and created again."""
        return "delete" in self.actions

    @property
    def changes_something(self) -> bool:
        """Whether the provider does anything."""
        return "no-op" not in self.actions


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A resource to plan: its type in Pulumi, its inputs, and its values so far, None for a new one."""

    token: str
    inputs: Inputs
    before: Mapping[str, object] | None = None


@dataclass(frozen=True, kw_only=True)
class Verdicts:
    """The plans of subjects by their position, and what the provider refuses."""

    plans: Mapping[int, Planned]
    refused: Mapping[int, str]


class Planner:
    """Runs `terraform plan` with the provider of a cloud; `binary` is the provider."""

    def __init__(self, cloud: str, binary: Path, folder: Path) -> None:
        self._folder = folder
        self._source, self._local, self._settings = PROVIDERS[cloud]
        self._environment = {
            "PATH": "/usr/bin:/bin",
            "HOME": str(folder),
            "TF_CLI_CONFIG_FILE": "terraform.rc",
        }
        self.title = self._source
        folder.mkdir(parents=True, exist_ok=True)
        link = folder / "providers" / f"terraform-provider-{self._source.partition('/')[2]}"
        link.parent.mkdir(exist_ok=True)
        link.unlink(missing_ok=True)
        link.symlink_to(binary.resolve())
        overrides = f'provider_installation {{ dev_overrides {{ "{self._source}" = "{link.parent}" }} }}\n'
        (folder / "terraform.rc").write_text(overrides, encoding="utf-8")
        self._write({})
        schemas = cast(
            "Mapping[str, Inputs]", json.loads(self._run("providers", "schema", "-json"))["provider_schemas"]
        )
        (found,) = (one for name, one in schemas.items() if name.endswith(self._source))
        self.schema = ProviderSchema(cast("Mapping[str, Inputs]", found["resource_schemas"]))

    def plan(self, subjects: Sequence[Subject]) -> Verdicts:
        """Plan all subjects; those that the provider refuses are left out of the plan of the others."""
        refused: dict[int, str] = {}
        bodies: dict[int, Document] = {}
        for number, subject in enumerate(subjects):
            try:
                bodies[number] = self.schema.body(subject.token, subject.inputs)
            except LookupError as unknown:
                refused[number] = str(unknown.args[0])
        while True:
            found = self._planned({number: (subjects[number], body) for number, body in bodies.items()})
            if isinstance(found, dict):
                return Verdicts(plans=found, refused=refused)
            refused |= dict(found)
            for number, _ in found:
                bodies.pop(number, None)

    def _planned(
        self, given: Mapping[int, tuple[Subject, Document]]
    ) -> dict[int, Planned] | list[tuple[int, str]]:
        """Return the plans, or what the provider refuses."""
        resources: dict[str, Document] = {}
        for number, (subject, body) in given.items():
            resources.setdefault(terraform_type(subject.token), {})[f"r{number}"] = body
        self._write({"resource": {**_PENDING, **resources}})
        self._write_state([(number, one) for number, (one, _) in given.items() if one.before is not None])
        arguments = ("plan", "-input=false", "-refresh=false", "-lock=false", "-json", "-out=plan")
        done = self._terraform(*arguments)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        wrong = [
            line["diagnostic"] for line in lines if line.get("@level") == "error" and "diagnostic" in line
        ]
        if wrong:
            return list(_addressed(wrong))
        if done.returncode:
            raise RehearsalError(f"terraform plan failed:\n{(done.stdout + done.stderr)[-3000:]}")
        plan = json.loads(self._run("show", "-json", "plan"))
        changes = [one for one in plan["resource_changes"] if one["type"] != "terraform_data"]
        return {
            int(one["name"].removeprefix("r")): Planned(
                actions=one["change"]["actions"],
                after=one["change"]["after"],
                unknown=one["change"]["after_unknown"],
            )
            for one in changes
            if one["change"]["after"] is not None
        }

    def made(self, token: str, planned: Planned) -> Mapping[str, object]:
        """Return the values of a resource after its creation, with made-up ones for what only the cloud knows."""
        return _filled(planned.after, planned.unknown, self.schema.block(token))

    def _write_state(self, subjects: Iterable[tuple[int, Subject]]) -> None:
        resources = [
            {
                "mode": "managed",
                "type": terraform_type(subject.token),
                "name": f"r{number}",
                "provider": f'provider["registry.terraform.io/{self._source}"]',
                "instances": [
                    {"schema_version": self.schema.version(subject.token), "attributes": subject.before}
                ],
            }
            for number, subject in subjects
        ]
        state = {"version": _STATE_VERSION, "serial": 1, "lineage": "judges", "resources": resources}
        (self._folder / "terraform.tfstate").write_text(json.dumps(state), encoding="utf-8")

    def _write(self, parts: Mapping[str, object]) -> None:
        document = {
            "terraform": {"required_providers": {self._local: {"source": self._source}}},
            "provider": {self._local: self._settings},
            **parts,
        }
        (self._folder / "main.tf.json").write_text(json.dumps(document), encoding="utf-8")

    def _run(self, *arguments: str) -> str:
        done = self._terraform(*arguments)
        if done.returncode:
            raise RehearsalError(f"terraform {arguments[0]} failed:\n{(done.stdout + done.stderr)[-3000:]}")
        return done.stdout

    def _terraform(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(shutil.which("terraform")), *arguments],
            cwd=self._folder,
            env=self._environment,
            capture_output=True,
            text=True,
            check=False,
        )


def _addressed(diagnostics: Iterable[Mapping[str, object]]) -> Iterable[tuple[int, str]]:
    """Yield the resource and the message of each diagnostic. Raises RehearsalError for one without a resource."""
    for one in diagnostics:
        snippet = cast("Mapping[str, object]", one.get("snippet") or {})
        found = ADDRESS.search(f"{one.get('address', '')} {snippet.get('context', '')}")
        message = f"{one['summary']}: {one.get('detail', '')}"
        if found is None:
            raise RehearsalError(f"terraform refuses the whole configuration: {message}")
        yield int(found[1]), message


def _filled(values: object, unknown: object, block: Block) -> Mapping[str, object]:
    """Return the values with made-up ones where they are unknown."""
    given, open_ = cast("Inputs", values or {}), cast("Inputs", unknown or {})
    made: Document = {}
    for name, kind in block.attributes.items():
        made[name] = _value(given.get(name), open_.get(name), kind)
    for name, inner in block.blocks.items():
        items = given.get(name)
        which = open_.get(name)
        if isinstance(items, list):
            several = cast("list[object]", items)
            flags = cast("list[object]", which) if isinstance(which, list) else [False] * len(several)
            made[name] = [_filled(one, flag, inner) for one, flag in zip(several, flags, strict=False)]
        elif isinstance(items, dict):
            made[name] = _filled(cast("object", items), which, inner)
        else:
            made[name] = items if items is not None or inner.single else []
    return made


def _value(value: object, unknown: object, kind: object) -> object:
    if unknown is True:
        if isinstance(kind, str):
            return _MADE_UP.get(kind)
        outer = cast("Sequence[object]", kind)[0]
        return [] if outer in ("list", "set") else {} if outer == "map" else None
    return value
