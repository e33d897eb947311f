"""The project and stack files a rehearsal runs with: copies, since the engine writes into them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import yaml

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace

_SALT = "encryptionsalt"
# What ties a stack to an account: another secrets provider, and configuration kept with a service.
_OF_AN_ACCOUNT = ("secretsprovider", "encryptedkey", "environment", _SALT)
# What ties the project to its folder: the program is run in this process, the stack file lies beside the copy.
_OF_THE_FOLDER = ("main", "stackConfigDir", "backend", "template")

SECRET_STAND_IN = "rehearsed-secret"  # noqa: S105 - what stands for a secret that only the real stack can read


def rehearsed_project(tracked: Json) -> Json:
    """Return the project file to rehearse with: the tracked one without what ties it to its folder."""
    return {
        **{key: value for key, value in tracked.items() if key not in _OF_THE_FOLDER},
        "runtime": "python",
    }


def rehearsed_stack(tracked: Json, previous: Json) -> Json:
    """Return the stack file to rehearse with.

    Takes the tracked file and the copy of the run before: its salt goes with the state it encrypted. A secret
    in the tracked file is encrypted for somebody else, so a fixed word stands for it.
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
            return SECRET_STAND_IN
        return {key: _without_ciphertext(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_without_ciphertext(inner) for inner in value]
    return value


def stack_file(stack: str, workspace: Workspace) -> Path:
    """Return the tracked file of a stack.

    Raises RehearsalError naming the stacks there are, where this one is not among them.
    """
    project = read_yaml(workspace.project_root / "Pulumi.yaml")
    folder = workspace.project_root / str(project.get("stackConfigDir", "."))
    file = folder / f"Pulumi.{stack}.yaml"
    if not file.is_file():
        there = sorted(
            found.name.removeprefix("Pulumi.").removesuffix(".yaml") for found in folder.glob("Pulumi.*.yaml")
        )
        raise RehearsalError(f"there is no stack {stack!r} (no {file}); stacks: {', '.join(there) or 'none'}")
    return file


def read_yaml(file: Path) -> Json:
    """Return the mapping in a YAML file; empty where the file is missing or empty.

    Raises RehearsalError where it is no YAML, or no mapping.
    """
    if not file.is_file():
        return {}
    try:
        read = cast("JsonValue", yaml.safe_load(file.read_text(encoding="utf-8")))
    except yaml.YAMLError as fault:
        raise RehearsalError(f"{file} is not YAML: {fault}") from fault
    if read is None:
        return {}
    if not isinstance(read, Mapping):
        raise RehearsalError(f"{file} must hold a mapping, as `config:` with its keys below")
    return read


def write_yaml(file: Path, content: Json) -> None:
    """Write a mapping as YAML."""
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program and what the engine needs to run it.

    Arguments: `program`, registers the resources; `project` and `settings`, the content of Pulumi.yaml and of
    the stack's file; `packages`, the providers it uses, by Pulumi's names; `policy_packs`, folders, and
    `policy_settings`, a file for each of them or none at all;
    `cloud`, where its platform is; `protected`, whether its engine is to refuse a destroy;
    `own_plugins`, packages of which the user's own plugin, where it is installed, is as good as the stand-in.
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
        """Return this project's own program with a stack's configuration and the policy pack.

        Raises ConfigError for a configuration the program would refuse, RehearsalError for an unknown stack.
        """
        # Here and not above: a program brings its providers' SDKs, half a second and 50 MB for a cloud's.
        from holdfast.infra.program import load_platform, provider_packages, run

        file = stack_file(stack, workspace)
        platform = load_platform(file)
        is_local = platform.cloud == "local"
        return cls(
            program=run,
            project=read_yaml(workspace.project_root / "Pulumi.yaml"),
            settings=read_yaml(file),
            packages=provider_packages(platform),
            policy_packs=(workspace.project_root / "policies",),
            cloud=platform.cloud,
            protected=getattr(platform, "protected", False) is True,
            # Its kubeconfig is that of the control plane here. A cloud's would be a stand-in's, and lead nowhere.
            own_plugins=frozenset({"kubernetes"} if is_local else ()),
        )

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.project["name"])
