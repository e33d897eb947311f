"""Serves stand-in providers to the engine, or lends it plugins the user has installed."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from rehearsal.engine.recovery import PendingOperation
from rehearsal.providers.serving import serve


class StandIns(Protocol):
    """Plays the providers of a stack."""

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package."""
        ...

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make, None where it made nothing."""
        ...


@contextmanager
def serving(packages: tuple[str, ...], stand_ins: StandIns) -> Generator[str]:
    """Serve a stand-in for each package; yield what the engine reads in PULUMI_DEBUG_PROVIDERS."""
    with ExitStack() as served:
        ports = {
            package: served.enter_context(serve(stand_ins.provider(package))).port for package in packages
        }
        yield ",".join(f"{package}:{port}" for package, port in ports.items())


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


def lend_plugin(plugin: Path, home: Path) -> None:
    """Make a plugin known in another home of the engine."""
    lent = home / "plugins" / plugin.name
    lent.parent.mkdir(parents=True, exist_ok=True)
    if not lent.exists():
        lent.symlink_to(plugin, target_is_directory=True)
