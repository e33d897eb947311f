"""Serves stand-in providers to the engine, or lends it the plugins that are used for real."""

from collections.abc import Generator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from holdfast.simulator.pulumi.checkpoint import PendingOperation
from holdfast.simulator.pulumi.plugins import installed_plugin, lend_plugin
from holdfast.simulator.pulumi.serving import serve
from holdfast.simulator.pulumi.subject import Subject


class StandIns(Protocol):
    """Plays the providers of a stack."""

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return the stand-in of a package."""
        ...

    def made(self, operation: PendingOperation) -> str | None:
        """Return the id of the object an interrupted create did make, None where it made nothing."""
        ...


@contextmanager
def serving(subject: Subject, stand_ins: StandIns, *, home: Path, user: Mapping[str, str]) -> Generator[str]:
    """Serve a stand-in for each package, or lend the engine the user's own plugin where the subject takes it.

    Yields what the engine reads in PULUMI_DEBUG_PROVIDERS. `home` is the engine's; `user` the environment in
    which the user's own home of the engine is looked up.
    """
    with ExitStack() as served:
        ports: dict[str, int] = {}
        for package in subject.packages:
            plugin = installed_plugin(package, user) if package in subject.own_plugins else None
            if plugin is None:
                ports[package] = served.enter_context(serve(stand_ins.provider(package))).port
            else:
                lend_plugin(plugin, home)
        yield ",".join(f"{package}:{port}" for package, port in ports.items())
