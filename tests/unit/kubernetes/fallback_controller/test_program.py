"""How the controller's program gets into its pods."""

import hashlib
import io
import subprocess
import sys
import zipfile
from base64 import b64decode, urlsafe_b64encode
from dataclasses import replace
from pathlib import Path

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
    deployment_spec,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import (
    LARGEST_CONFIG_MAP,
    Archive,
    ControllerImages,
    archive_of,
    controller_archives,
    controller_images,
    package_modules,
    pinned_packages,
)
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import text
from tests.support.json_objects import obj, objects

PROGRAM = Archive(name="program", content=b"PK one", digest="a" * 64)
PACKAGES = Archive(name="packages", content=b"PK two", digest="b" * 64)
IMAGES = ControllerImages(
    controller="docker.io/library/python:3.13",
    placeholder="registry.k8s.io/pause:3",
    archives=(PROGRAM, PACKAGES),
)


def pod(images: ControllerImages) -> Json:
    return obj(obj(deployment_spec(images, 2)["template"])["spec"])


def container(images: ControllerImages) -> Json:
    (found,) = objects(pod(images)["containers"])
    return found


def test_the_pod_mounts_every_archive_and_imports_from_it() -> None:
    mounted = {str(each["name"]): each for each in objects(container(IMAGES)["volumeMounts"])}
    volumes = {str(each["name"]): obj(each["configMap"])["name"] for each in objects(pod(IMAGES)["volumes"])}
    assert volumes == {"program": PROGRAM.config_map, "packages": PACKAGES.config_map}
    assert all(each["readOnly"] for each in mounted.values())
    (path,) = [
        str(each["value"]) for each in objects(container(IMAGES)["env"]) if each["name"] == "PYTHONPATH"
    ]
    assert path.split(":") == [
        f"{mounted['program']['mountPath']}/program.zip",
        f"{mounted['packages']['mountPath']}/packages.zip",
    ]
    assert container(IMAGES)["command"] == ["python", "-S", "-m", "pulumi_holdfast.controller"]


def test_an_image_with_the_program_in_it_runs_as_it_is() -> None:
    own = controller_images("3.13", "3", None, own="registry.example.com/c:1", archives=())
    assert own.controller == "registry.example.com/c:1"
    assert not {"command", "env", "volumeMounts"} & container(own).keys()
    assert "volumes" not in pod(own)


def test_archives_are_immutable_config_maps_that_exist_before_the_deployment() -> None:
    args = FallbackControllerArgs(images=IMAGES, replicas=1)
    controller = record(lambda: FallbackController("fallback", args))
    maps = controller.of(":ConfigMap")
    assert {text(each, "metadata", "name") for each in maps} == {PROGRAM.config_map, PACKAGES.config_map}
    for each in maps:
        assert each.inputs["immutable"] is True, f"{each.name}: running code is changed by an update only"
        (content,) = obj(each.inputs["binaryData"]).values()
        assert b64decode(str(content)).startswith(b"PK"), f"{each.name} has the archive"
    assert controller.everything_before(controller.one(":Deployment")) >= {each.name for each in maps}


def test_changed_modules_get_a_new_config_map_under_a_new_resource() -> None:
    changed = replace(PROGRAM, digest="c" * 64)
    names: list[str] = []
    for archive in (PROGRAM, changed):
        args = FallbackControllerArgs(images=replace(IMAGES, archives=(archive,)), replicas=1)
        names.append(record(lambda args=args: FallbackController("fallback", args)).one(":ConfigMap").name)
    assert names[0] != names[1]
    assert PROGRAM.config_map != changed.config_map


@pytest.mark.parametrize(
    ("mirror", "own", "controller", "placeholder"),
    [
        (None, None, f"docker.io/library/python:{versions.PYTHON_IMAGE}", "registry.k8s.io/pause:3.10.1"),
        (
            "mirror.example.com/m",
            None,
            f"mirror.example.com/m/library/python:{versions.PYTHON_IMAGE}",
            "mirror.example.com/m/pause:3.10.1",
        ),
        (
            "mirror.example.com/m",
            "own.example.com/c:2",
            "own.example.com/c:2",
            "mirror.example.com/m/pause:3.10.1",
        ),
    ],
)
def test_images_come_from_the_mirror_unless_one_is_set(
    mirror: str | None, own: str | None, controller: str, placeholder: str
) -> None:
    found = controller_images(versions.PYTHON_IMAGE, "3.10.1", mirror, own=own, archives=(PROGRAM,))
    assert (found.controller, found.placeholder) == (controller, placeholder), "the cluster must pull it"
    assert bool(found.archives) == (own is None)


def test_the_limit_of_an_archive_is_that_of_a_config_map() -> None:
    assert LARGEST_CONFIG_MAP == 1_048_576


ROOT = Path(__file__).parents[4]


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
