"""The engine gets a simulated provider, or the user's own plugin."""

from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

import pytest
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.rehearsal.engine import Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.providers import serving


class _Providers:
    """Plays every provider by one that implements nothing, and notes which were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def provider(self, package: str) -> ResourceProviderServicer:
        self.asked.append(package)
        return ResourceProviderServicer()

    def made(self, operation: PendingOperation) -> str | None:
        return None


def _nothing() -> None:
    """Register nothing."""


@pytest.fixture
def user(tmp_path: Path) -> dict[str, str]:
    """A user who has the plugins for Kubernetes and AWS installed."""
    for package in ("kubernetes", "aws"):
        (tmp_path / "user" / "plugins" / f"resource-{package}-v{version(f'pulumi-{package}')}").mkdir(
            parents=True
        )
    return {"PULUMI_HOME": str(tmp_path / "user")}


@pytest.fixture
def asked_for(tmp_path: Path, user: dict[str, str]) -> Callable[[frozenset[str]], tuple[list[str], str]]:
    def ask(own_plugins: frozenset[str]) -> tuple[list[str], str]:
        providers = _Providers()
        subject = Subject(
            program=_nothing,
            project={"name": "holdfast"},
            settings={},
            packages=("kubernetes", "aws"),
            own_plugins=own_plugins,
        )
        with serving(subject, providers, home=tmp_path / "home", user=user) as ports:
            return providers.asked, ports

    return ask


def test_a_package_is_simulated_where_the_users_plugin_is_not_allowed(
    tmp_path: Path, asked_for: Callable[[frozenset[str]], tuple[list[str], str]]
) -> None:
    asked, ports = asked_for(frozenset())
    assert asked == ["kubernetes", "aws"]
    assert [entry.split(":")[0] for entry in ports.split(",")] == asked
    assert not (tmp_path / "home").exists()


def test_the_users_plugin_is_linked_where_it_is_allowed(
    tmp_path: Path, asked_for: Callable[[frozenset[str]], tuple[list[str], str]]
) -> None:
    asked, ports = asked_for(frozenset({"kubernetes"}))
    assert asked == ["aws"]
    assert ports.startswith("aws:"), "the engine would use the simulator"
    lent = [folder.name for folder in (tmp_path / "home" / "plugins").iterdir()]
    assert lent == [f"resource-kubernetes-v{version('pulumi-kubernetes')}"]
