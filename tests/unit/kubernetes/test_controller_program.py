"""The archives of the controller's program: complete, reproducible, and made of what is pinned."""

import hashlib
import io
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from pulumi_holdfast.kubernetes.fallback_controller.program import (
    LARGEST_CONFIG_MAP,
    Archive,
    archive_of,
    controller_archives,
    package_modules,
    pinned_packages,
)
from pulumi_holdfast.ladder.errors import ConfigError

ROOT = Path(__file__).parents[3]


def names(archive: Archive) -> list[str]:
    with zipfile.ZipFile(io.BytesIO(archive.content)) as content:
        return content.namelist()


def test_the_controller_starts_from_its_archives_alone(tmp_path: Path) -> None:
    for archive in controller_archives():
        (tmp_path / archive.file).write_bytes(archive.content)
    path = ":".join(str(tmp_path / archive.file) for archive in controller_archives())
    answer = subprocess.run(
        # -S: nothing of this machine's own packages.
        [sys.executable, "-S", "-m", "pulumi_holdfast.controller", "--help"],
        cwd=tmp_path,
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0
    assert "--placeholder-image" in answer.stdout


def test_each_archive_fits_in_a_config_map_and_has_no_compiled_module() -> None:
    program, packages = controller_archives()
    for archive in (program, packages):
        assert len(archive.content) < 0.8 * LARGEST_CONFIG_MAP, f"{archive.name} nears the API server's limit"
        compiled = [name for name in names(archive) if name.endswith((".so", ".pyd", ".pyc"))]
        assert not compiled, f"{archive.name} runs on every platform and Python of the image"
    assert "pulumi_holdfast/controller/__main__.py" in names(program)
    tests = [name for name in names(program) if not name.startswith("pulumi_holdfast/")]
    assert not tests
    licensed = {name.partition("-")[0] for name in names(packages) if ".dist-info/" in name}
    locked = pinned_packages(
        (ROOT / "components/pulumi_holdfast/controller" / "requirements.lock").read_text()
    )
    assert licensed == {name.replace("-", "_") for name in locked}


def test_packing_again_gives_the_same_archive_whatever_the_order() -> None:
    modules = {"b.py": b"2", "a.py": b"1"}
    first, second = archive_of("x", modules), archive_of("x", dict(sorted(modules.items())))
    assert first == second, "each machine would restart the controller"
    with zipfile.ZipFile(io.BytesIO(first.content)) as content:
        assert {entry.date_time[0] for entry in content.infolist()} == {1980}


@pytest.mark.parametrize("other", [{"a.py": b"12"}, {"a.p": b"y1"}, {"a.py": b"1", "b.py": b""}, {}])
def test_the_digest_differs_for_different_modules(other: dict[str, bytes]) -> None:
    assert archive_of("x", {"a.py": b"1"}).digest != archive_of("x", other).digest


def test_every_locked_package_is_packed_whatever_the_python() -> None:
    lock = 'aiohttp==3.14.5 \\\n    --hash=x\ntyping-extensions==4.16.0 ; python_version < "3.13" \\\n'
    assert pinned_packages(lock) == {"aiohttp": "3.14.5", "typing-extensions": "4.16.0"}


@pytest.mark.parametrize(
    ("package", "had"), [("aiohttp", "has 3."), ("no-such-package-of-holdfast", "has none")]
)
def test_a_package_that_is_not_at_its_pinned_version_is_refused(package: str, had: str) -> None:
    with pytest.raises(ConfigError) as refused:
        package_modules({package: "0.0.1"})
    assert f"{package}==0.0.1, and this environment {had}" in str(refused.value)
    assert "pulumi install" in str(refused.value)


def installed(folder: Path, content: bytes, *, record: bool = True) -> None:
    """Install the package `pinned` with one module, whose record has the digest of `content`."""
    digest = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    information = folder / "pinned-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Name: pinned\nVersion: 1.0\n")
    hashed = f"sha256={digest},{len(content)}" if record else ","
    (information / "RECORD").write_text(f"pinned.py,{hashed}\n")
    (folder / "pinned.py").write_bytes(b"VALUE = 1\n")


@pytest.mark.parametrize(
    ("recorded", "record"), [(b"VALUE = 2\n", True), (b"VALUE = 1\n", False)], ids=["changed", "no digest"]
)
def test_a_module_that_was_changed_after_its_installation_is_refused(
    recorded: bytes, record: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed(tmp_path, recorded, record=record)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with pytest.raises(ConfigError, match=r"pinned\.py"):
        package_modules({"pinned": "1.0"})


def test_an_untouched_module_is_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed(tmp_path, b"VALUE = 1\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert package_modules({"pinned": "1.0"}) == {"pinned.py": b"VALUE = 1\n"}
