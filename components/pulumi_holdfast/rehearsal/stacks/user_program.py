"""A Pulumi program of another project: found by its Pulumi.yaml, run in this process as its language host runs it."""

import importlib.util
import os
import runpy
import shutil
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import Final

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.clouds.answers import NO_ANSWERS, Answers
from pulumi_holdfast.rehearsal.engine import Audience, Subject
from pulumi_holdfast.rehearsal.engine.kubernetes_plugin import everywhere
from pulumi_holdfast.rehearsal.engine.providers import installed_plugin
from pulumi_holdfast.rehearsal.engine.settings import policy_pack, read_yaml, stack_file
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.stack import Stack, StackEnvironment

PROJECT_FILE: Final = "Pulumi.yaml"
_ENTRY: Final = "__main__.py"
#: Modules that the rehearsal itself runs with.
_KEPT: Final = {"__main__", "holdfast", "pulumi"}
_SIMULATED: Final = ("aws", "azure-native", "gcp", "kubernetes")


@dataclass(frozen=True, kw_only=True)
class UserProgram:
    """A program in Python: `folder` has its Pulumi.yaml, `entry` is the file that Python runs."""

    folder: Path
    entry: Path
    project: Json

    @classmethod
    def in_folder(cls, folder: Path) -> "UserProgram":
        """Return the program of a project. Raises RehearsalError if it is not a program in Python."""
        root = folder.resolve()
        project = read_yaml(root / PROJECT_FILE)
        runtime = project.get("runtime")
        name = mapping(runtime).get("name") if not isinstance(runtime, str) else runtime
        if name != "python":
            raise RehearsalError(
                f"{root / PROJECT_FILE}: runtime is {name!r}; only programs in `python` run in a rehearsal. "
                "For another language, run `pulumi preview --policy-pack` with the policy pack"
            )
        if not project.get("name"):
            raise RehearsalError(
                f"{root / PROJECT_FILE}: name is missing; write `name:` with the project's name"
            )
        main = root / str(project.get("main", "."))
        entry = main / _ENTRY if main.is_dir() else main
        if not entry.is_file():
            raise RehearsalError(
                f"{entry} does not exist; write the program there, or name its folder with `main:` in {PROJECT_FILE}"
            )
        return cls(folder=root, entry=entry, project=project)

    def __call__(self) -> None:
        """Register the program's resources; each call imports the project's modules again."""
        _forget_modules(self.folder)
        runpy.run_path(str(self.entry), run_name="__main__")

    @contextmanager
    def importable(self) -> Generator[None]:
        """Make the program's folder the current one and the first on the import path, as its language host does."""
        path, before = str(self.entry.parent), Path.cwd()
        hidden = _namesakes(self.entry.parent)
        for name in hidden:
            del sys.modules[name]
        sys.path.insert(0, path)
        os.chdir(path)
        try:
            yield
        finally:
            os.chdir(before)
            sys.path.remove(path)
            _forget_modules(self.folder)
            sys.modules.update(hidden)

    def stack(
        self,
        name: str | None,
        *,
        plugins: Iterable[str] = (),
        has_cluster: bool = False,
        answers: Answers = NO_ANSWERS,
        charts: Path | None = None,
        report: Callable[[str], None],
        audience: Audience,
    ) -> Stack:
        """Return a stack of the program on simulators.

        `name` is by default the name of its only stack file; a program without stack files gets an empty configuration.
        `plugins` are packages whose installed plugins run. `has_cluster`: a cluster exists before the program, and
        each kubeconfig reaches it. `answers` precede the functions of the clouds; `charts` is a folder of charts. Raises RehearsalError for an unknown stack, and for a plugin that is not installed.
        """
        workspace = Workspace(project_root=self.folder)
        stack = name or self._only_stack()
        settings = read_yaml(stack_file(stack, workspace)) if name or self._stacks() else dict[str, Json]()
        own = frozenset(plugins)
        for package in sorted(own):
            _require_plugin(package)
        lent = frozenset(package for package in own if not _is_on_path(package))
        simulated = (package for package in _SIMULATED if package not in own and _has_sdk(package))
        place = f"{stack}-rehearsal"
        return Stack(
            name=stack,
            place=place,
            workspace=workspace,
            subject=Subject(
                program=self,
                project=self.project,
                settings=settings,
                packages=(*simulated, *sorted(lent)),
                own_plugins=lent,
                policy_packs=(policy_pack(workspace),),
            ),
            environment=StackEnvironment(stack=place, workspace=workspace, report=report),
            audience=audience,
            reach=everywhere if has_cluster else None,
            answers=answers,
            charts=charts,
        )

    def _stacks(self) -> list[str]:
        folder = self.folder / str(self.project.get("stackConfigDir", "."))
        return sorted(
            file.name.removeprefix("Pulumi.").removesuffix(".yaml") for file in folder.glob("Pulumi.*.yaml")
        )

    def _only_stack(self) -> str:
        found = self._stacks()
        if len(found) > 1:
            raise RehearsalError(
                f"{self.folder} has several stacks: name one of {', '.join(found)} with --stack"
            )
        return found[0] if found else "dev"


def _namesakes(folder: Path) -> dict[str, ModuleType]:
    """The imported modules, with those inside them, that have the name of a module of this folder.

    Not those that are imported before the program in its language host too.
    """
    packages = (each.parent for each in folder.glob("*/__init__.py"))
    own = {each.stem for each in (*folder.glob("*.py"), *packages)} - {*_KEPT, *sys.stdlib_module_names}
    return {name: module for name, module in sys.modules.items() if name.partition(".")[0] in own}


def _forget_modules(folder: Path) -> None:
    """Remove the modules of a folder from the cache, except Holdfast's and those of a virtual environment in it."""
    installed = Path(sys.prefix).resolve()
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        is_ours = name.partition(".")[0] in _KEPT
        path = Path(file).resolve() if file and not is_ours else None
        if path is not None and path.is_relative_to(folder) and not path.is_relative_to(installed):
            del sys.modules[name]


def _has_sdk(package: str) -> bool:
    return importlib.util.find_spec(f"pulumi_{package.replace('-', '_')}") is not None


def _require_plugin(package: str) -> None:
    try:
        wanted = version(f"pulumi-{package}")
    except PackageNotFoundError:
        raise RehearsalError(
            f"--plugin {package}: pulumi-{package} is not installed; install it beside Holdfast"
        ) from None
    if not _is_on_path(package) and installed_plugin(package, os.environ) is None:
        raise RehearsalError(
            f"--plugin {package}: the plugin {wanted} is not installed; "
            f"run `pulumi plugin install resource {package} {wanted}`"
        )


def _is_on_path(package: str) -> bool:
    """Whether the engine finds the plugin itself."""
    return shutil.which(f"pulumi-resource-{package}") is not None
