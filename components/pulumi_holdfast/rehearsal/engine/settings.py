"""The project, stack file and program of a run; the files are copies, because the engine writes to them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml

from pulumi_holdfast.config.loader import load_yaml
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import REPOSITORY, Workspace

_SALT = "encryptionsalt"
# The account of a stack: another secrets provider, and configuration in a service.
_OF_AN_ACCOUNT = ("secretsprovider", "encryptedkey", "environment", _SALT)
# Paths of the project: the program runs in this process, and the stack file is next to the copy.
_OF_THE_FOLDER = ("main", "stackConfigDir", "backend", "template")

SECRET_PLACEHOLDER = "rehearsed-secret"  # noqa: S105 - the placeholder of secrets that only the real stack can decrypt


def rehearsed_project(tracked: Json) -> Json:
    """Return the tracked project file without its paths."""
    return {
        **{key: value for key, value in tracked.items() if key not in _OF_THE_FOLDER},
        "runtime": "python",
    }


def rehearsed_stack(tracked: Json, previous: Json) -> Json:
    """Return the tracked stack file without its account.

    `previous` is the copy of the previous run, whose salt belongs to the state. Encrypted values of the tracked file
    cannot be decrypted here and become a placeholder.
    """
    kept = {key: value for key, value in tracked.items() if key not in _OF_AN_ACCOUNT}
    config = kept.get("config")
    if isinstance(config, Mapping):
        kept["config"] = {key: _without_ciphertext(value) for key, value in config.items()}
    if _SALT in previous:
        kept[_SALT] = previous[_SALT]
    return kept


def _without_ciphertext(value: JsonValue) -> JsonValue:
    if isinstance(value, Mapping):
        if set(value) == {"secure"}:
            return SECRET_PLACEHOLDER
        return {key: _without_ciphertext(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_ciphertext(inner) for inner in value]
    return value


def stack_file(stack: str, workspace: Workspace) -> Path:
    """Return the tracked file of a stack.

    Raises RehearsalError with the names of the existing stacks where it does not exist.
    """
    project = read_yaml(workspace.project_root / "Pulumi.yaml")
    folder = workspace.project_root / str(project.get("stackConfigDir", "."))
    file = folder / f"Pulumi.{stack}.yaml"
    if not file.is_file():
        there = sorted(
            found.name.removeprefix("Pulumi.").removesuffix(".yaml") for found in folder.glob("Pulumi.*.yaml")
        )
        raise RehearsalError(
            f"there is no stack {stack!r} (no {file}); use one of the stacks: {', '.join(there) or 'none'}"
        )
    return file


def policy_pack(workspace: Workspace) -> Path:
    """Return the policy pack of a project: its own, or the package's."""
    own = workspace.project_root / "policies"
    return own if (own / "PulumiPolicy.yaml").is_file() else REPOSITORY / "policies"


def read_yaml(file: Path) -> Json:
    """Return the mapping in a YAML file; empty where the file is missing or empty.

    Raises RehearsalError where it is not YAML or not a mapping.
    """
    if not file.is_file():
        return {}
    try:
        read = cast("JsonValue", load_yaml(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as fault:
        raise RehearsalError(f"{file} is not YAML: {fault}") from fault
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise RehearsalError(f"{file} is not a mapping; write `config:` with its keys below")
    return read


def write_yaml(file: Path, content: Json) -> None:
    """Write a mapping as YAML."""
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program and the settings of the engine that runs it.

    `program` registers the resources; `project` and `settings` are the content of Pulumi.yaml and of the stack's
    file; `packages` are the names of its providers; `policy_packs` are folders, and `policy_settings` one file for
    each of them or none at all; `cloud` is the cloud of its platform; `protected`: the engine refuses a destroy;
    `own_plugins` are the packages whose plugin, as the user installed it, runs in place of a served provider.
    """

    program: Callable[[], None]
    project: Json
    settings: Json
    packages: tuple[str, ...]
    policy_packs: tuple[Path, ...] = field(default=())
    policy_settings: tuple[Path, ...] = field(default=())
    cloud: str = ""
    protected: bool = False
    own_plugins: frozenset[str] = frozenset()

    @classmethod
    def holdfast(cls, stack: str, workspace: Workspace) -> "Subject":
        """Return the program with a stack's configuration and the policy pack: the project's own, or the package's.

        Raises ConfigError for an invalid configuration, RehearsalError for an unknown stack.
        """
        # A local import, because a cloud's SDK takes half a second and 50 MB.
        from pulumi_holdfast.stack_program import load_platform, provider_packages, run

        file = stack_file(stack, workspace)
        pack = policy_pack(workspace)
        strict = pack / "profiles" / "strict.json"
        platform = load_platform(file)
        return cls(
            program=run,
            project=read_yaml(workspace.project_root / "Pulumi.yaml"),
            settings=read_yaml(file),
            packages=provider_packages(platform),
            policy_packs=(pack,),
            # A pack of another author has levels of its own.
            policy_settings=(strict,) if strict.is_file() else (),
            cloud=platform.cloud,
            protected=getattr(platform, "protected", False) is True,
        )

    @property
    def name(self) -> str:
        """The name of the project."""
        return str(self.project["name"])
