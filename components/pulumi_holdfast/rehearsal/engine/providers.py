"""Serves the providers of a stack to the engine, or links the user's own plugins into its home."""

import shutil
from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.engine.settings import Subject

_LAUNCHER = "pulumi-analyzer-policy-python"
_BIN = Path(__file__).parent / "bin"


def install_pack_launcher(home: Path, environment: Mapping[str, str]) -> None:
    """Install the launcher of Python policy packs, unless the engine's own is on the path.

    As a plugin: the engine prints a warning for a launcher on the path.
    """
    if shutil.which(_LAUNCHER, path=environment.get("PATH")) is None:
        lend_plugin(_BIN, home, name="analyzer-policy-python-v1.0.0")


def installed_plugin(package: str, environment: Mapping[str, str]) -> Path | None:
    """Return the folder of the user's plugin for a package, in the version of the Python SDK.

    None where it is not installed, or only partially.
    """
    home = Path(environment.get("PULUMI_HOME") or Path.home() / ".pulumi")
    name = f"resource-{package}-v{version(f'pulumi-{package}')}"
    folder = home / "plugins" / name
    # The engine marks an incomplete download with this file.
    partial = folder.with_name(f"{name}.partial")
    return folder if folder.is_dir() and not partial.exists() else None


def lend_plugin(plugin: Path, home: Path, *, name: str | None = None) -> None:
    """Link a plugin into another home of the engine.

    The files are linked one by one, because the engine ignores a folder that is a link.
    """
    lent = home / "plugins" / (name or plugin.name)
    lent.mkdir(parents=True, exist_ok=True)
    for file in plugin.iterdir():
        link = lent / file.name
        link.unlink(missing_ok=True)
        link.symlink_to(file)


class ProviderSource(Protocol):
    """Provides the providers of a stack."""

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the provider of a package."""
        ...

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object that an interrupted create left in the cloud, None for none."""
        ...


@contextmanager
def serving(
    subject: Subject, providers: ProviderSource, *, home: Path, user: Mapping[str, str]
) -> Generator[str]:
    """Serve a provider for each package, or link the user's own plugin where the subject allows it.

    Yields the value of PULUMI_DEBUG_PROVIDERS. `home` is the engine's home; `user` is the user's environment, which
    names the user's own home.
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
