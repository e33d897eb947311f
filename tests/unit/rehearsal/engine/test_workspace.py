"""What the engine keeps of a stack, and the plugins it is lent."""

import os
import socket
import stat
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import JsonValue
from pulumi_holdfast.rehearsal.engine.providers import install_pack_launcher, installed_plugin, lend_plugin
from pulumi_holdfast.rehearsal.engine.settings import read_yaml
from pulumi_holdfast.rehearsal.engine.workspace import (
    EngineFolder,
    Lock,
    engine_started,
    is_held,
    read_locks,
    release_stale_locks,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.builders.engine_records import write_lock


def _prepared(root: Path, **settings: JsonValue) -> EngineFolder:
    folder = EngineFolder.of("dev", Workspace(project_root=root))
    folder.prepare(project={"name": "holdfast"}, stack="dev", settings={"config": {}, **settings})
    return folder


def test_project_and_stack_file_are_copied_and_the_salt_survives(tmp_path: Path) -> None:
    folder = _prepared(tmp_path)
    assert folder.project.is_relative_to(tmp_path / ".rehearsal" / "dev")
    assert read_yaml(folder.project / "Pulumi.dev.yaml") == {"config": {}}
    copy = folder.project / "Pulumi.dev.yaml"
    copy.write_text("config: {}\nencryptionsalt: v1:x\n")
    _prepared(tmp_path)
    assert read_yaml(copy)["encryptionsalt"] == "v1:x", "secrets in the state could not be decrypted"


def test_the_passphrase_is_drawn_once_for_each_stack_and_its_owner(tmp_path: Path) -> None:
    folder = _prepared(tmp_path)
    first = folder.passphrase.read_text()
    _prepared(tmp_path)
    assert folder.passphrase.read_text() == first, "the state could not be decrypted any more"
    assert stat.S_IMODE(folder.passphrase.stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.root.stat().st_mode) == 0o700
    passphrases = {_prepared(tmp_path / name).passphrase.read_text() for name in ("one", "two")}
    assert len(passphrases) == 2


def test_an_installed_plugin_is_found_at_the_version_of_its_package(tmp_path: Path) -> None:
    (tmp_path / "plugins" / "resource-kubernetes-v0.0.1").mkdir(parents=True)
    environment = {"PULUMI_HOME": str(tmp_path)}
    assert installed_plugin("kubernetes", environment) is None
    plugin = tmp_path / "plugins" / f"resource-kubernetes-v{version('pulumi-kubernetes')}"
    plugin.mkdir(parents=True)
    assert installed_plugin("kubernetes", environment) == plugin
    plugin.with_name(f"{plugin.name}.partial").touch()
    assert installed_plugin("kubernetes", environment) is None


def test_plugins_are_lent_as_links_and_packs_get_a_launcher(tmp_path: Path) -> None:
    plugin = tmp_path / "resource-kubernetes-v1.0.0"
    plugin.mkdir()
    (plugin / "pulumi-resource-kubernetes").write_text("x")
    for _ in range(2):
        lend_plugin(plugin, tmp_path / "home")
    lent = tmp_path / "home" / "plugins" / plugin.name
    assert not lent.is_symlink()
    assert (lent / "pulumi-resource-kubernetes").read_text() == "x"
    own = tmp_path / "bin" / "pulumi-analyzer-policy-python"
    own.parent.mkdir()
    own.touch(mode=0o755)
    install_pack_launcher(tmp_path / "with", {"PATH": str(own.parent)})
    assert not (tmp_path / "with").exists()
    install_pack_launcher(tmp_path / "without", {"PATH": str(tmp_path)})
    (launcher,) = (tmp_path / "without" / "plugins").glob("*/pulumi-analyzer-policy-python")
    assert launcher.stat().st_mode & stat.S_IXUSR, "the engine cannot start the launcher"


_HERE = "here"


def _lock(**overrides: object) -> Lock:
    lock = Lock(file=Path("lock.json"), pid=7, hostname=_HERE, written=1000.0)
    return replace(lock, **overrides)


def _held(lock: Lock, started: float | None) -> bool:
    return is_held(lock, hostname=_HERE, started=lambda _: started)


def test_only_locks_of_dead_runs_are_removed(tmp_path: Path) -> None:
    assert not _held(_lock(), started=None), "a killed run would lock the stack indefinitely"
    assert _held(_lock(), started=990.0), "two runs at once would spoil the state"
    assert not _held(_lock(), started=1500.0)
    assert _held(_lock(hostname="elsewhere"), started=None), "its processes cannot be seen from here"
    assert engine_started(os.getpid()) is None
    assert release_stale_locks(tmp_path / "none", stack="dev") == 0
    (tmp_path / "half.json").write_text('{"pid": 7, "host')
    assert read_locks(tmp_path) == ()
    file = write_lock(tmp_path, pid=2**22 + 1, hostname=socket.gethostname(), written=1000.0)
    released = release_stale_locks(tmp_path, stack="dev")
    assert released == 1
    assert not file.exists()
    file = write_lock(tmp_path, pid=7, hostname="elsewhere", written=1000.0)
    with pytest.raises(RehearsalError, match=r"process 7 on elsewhere.*lock\.json"):
        release_stale_locks(tmp_path, stack="dev")
    assert file.exists()
