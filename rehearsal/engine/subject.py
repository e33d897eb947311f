"""What is rehearsed: a program, its settings and the providers it uses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from rehearsal.json import Json


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program and what the engine needs to run it.

    Arguments: `program`, registers the resources; `project` and `settings`, the content of Pulumi.yaml and of
    the stack's file; `packages`, the providers it uses, by Pulumi's names; `policy_packs`, folders.
    """

    program: Callable[[], None]
    project: Json
    settings: Json
    packages: tuple[str, ...]
    policy_packs: tuple[Path, ...] = field(default=())

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.project["name"])
