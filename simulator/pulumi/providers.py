"""Serves stand-in providers to the engine, or lends it the plugins that are used for real."""

import shutil
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.simulator.pulumi.checkpoint import PendingOperation
from holdfast.simulator.pulumi.plugin import serve
from holdfast.simulator.pulumi.settings import Subject

_LAUNCHER = "pulumi-analyzer-policy-python"
_BIN = Path(__file__).parent / "bin"


def install_pack_launcher(home: Path, environment: Mapping[str, str]) -> None:
    """Let the engine run policy packs written in Python, unless its own launcher is on the path.

    As a plugin, not on the path: the engine would print a warning for one it finds there.
    """
    if shutil.which(_LAUNCHER, path=environment.get("PATH")) is None:
        lend_plugin(_BIN, home, name="analyzer-policy-python-v1.0.0")


def installed_plugin(package: str, environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the user's plugin for a package, at the version its Python package asks for.

    None where it is not installed, or only in part.
    """
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    name = f"resource-{package}-v{version(f'pulumi-{package}')}"
    folder = home / "plugins" / name
    # The engine marks a download that did not end by a file beside the folder.
    partial = folder.with_name(f"{name}.partial")
    return folder if folder.is_dir() and not partial.exists() else None


def lend_plugin(plugin: Path, home: Path, *, name: str | None = None) -> None:
    """Make a plugin known in another home of the engine.

    Its files are linked one by one, since the engine passes over a folder that is itself a link.
    """
    lent = home / "plugins" / (name or plugin.name)
    lent.mkdir(parents=True, exist_ok=True)
    for file in plugin.iterdir():
        link = lent / file.name
        link.unlink(missing_ok=True)
        link.symlink_to(file)


class ProviderSource(Protocol):
    """Plays the providers of a stack."""

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package."""
        ...

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make, None where it made nothing."""
        ...


@contextmanager
def serving(
    subject: Subject, providers: ProviderSource, *, home: Path, user: Mapping[str, str]
) -> Generator[str]:
    """Serve a stand-in for each package, or lend the engine the user's own plugin where the subject takes it.

    Yields what the engine reads in PULUMI_DEBUG_PROVIDERS. `home` is the engine's; `user` the environment in
    which the user's own home of the engine is looked up.
    """
    with ExitStack() as served:
        ports: dict[str, int] = {}
        for package in subject.packages:
            plugin = installed_plugin(package, user) if package in subject.own_plugins else None
            if plugin is None:
                ports[package] = served.enter_context(serve(providers.provider(package))).port
            else:
                lend_plugin(plugin, home)
        yield ",".join(f"{package}:{port}" for package, port in ports.items())
