"""The controller's program, which is part of the stack: archives of Python modules in ConfigMaps, and how a container runs them."""

from __future__ import annotations

import hashlib
import io
import re
import zipfile
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, PackagePath, distribution
from pathlib import Path
from typing import Final

from pulumi_holdfast.kubernetes.operators.pod_settings import image
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER

#: The module that the container runs.
MODULE: Final = "pulumi_holdfast.controller"

#: The limit of the API server for the data of one ConfigMap, in bytes.
LARGEST_CONFIG_MAP: Final = 1024 * 1024

_FOLDER: Final = "/opt/holdfast"


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A zip archive of Python modules.

    `digest` is that of the modules, in hexadecimal, and not that of `content`: the compression of one machine may differ
    from that of another.
    """

    name: str
    content: bytes = field(repr=False)
    digest: str

    @property
    def config_map(self) -> str:
        """The name of its ConfigMap, which changes with the modules, so that the ConfigMap never changes."""
        return f"{CONTROLLER}-{self.name}-{self.digest[:16]}"

    @property
    def file(self) -> str:
        """The key in the ConfigMap, and the file's name in the container."""
        return f"{self.name}.zip"

    @property
    def binary_data(self) -> Mapping[str, str]:
        """The data of its ConfigMap."""
        return {self.file: b64encode(self.content).decode()}


@dataclass(frozen=True, kw_only=True)
class ControllerImages:
    """The images of the controller and of its placeholder pods, with registry and tag.

    `archives` are what the controller's image runs; none: the image contains the program.
    """

    controller: str
    placeholder: str
    archives: Sequence[Archive] = ()


def controller_images(
    python: str, pause: str, mirror: str | None, *, own: str | None, archives: Sequence[Archive]
) -> ControllerImages:
    """Return the public images of these versions from the registry `mirror`; None: the projects' own.

    `own` is an image that contains the program, and replaces the one of Python.
    """
    placeholder = f"{image(mirror, 'registry.k8s.io/pause')}:{pause}"
    if own is not None:
        return ControllerImages(controller=own, placeholder=placeholder)
    controller = f"{image(mirror, 'docker.io/library/python')}:{python}"
    return ControllerImages(controller=controller, placeholder=placeholder, archives=tuple(archives))


def program_of_container(archives: Sequence[Archive]) -> Json:
    """Return the fields of a container that runs the archives; none without archives."""
    if not archives:
        return {}
    path = ":".join(f"{_FOLDER}/{archive.name}/{archive.file}" for archive in archives)
    return {
        # Of this image's modules only those of the standard library.
        "command": ["python", "-S", "-m", MODULE],
        "env": [
            {"name": "PYTHONPATH", "value": path},
            {"name": "PYTHONUNBUFFERED", "value": "1"},
            {"name": "PYTHONDONTWRITEBYTECODE", "value": "1"},
        ],
    }


def mounts_of_container(archives: Sequence[Archive]) -> Sequence[Json]:
    """Return the volume mounts of a container that runs the archives."""
    return [
        {"name": archive.name, "mountPath": f"{_FOLDER}/{archive.name}", "readOnly": True}
        for archive in archives
    ]


def volumes_of_pod(archives: Sequence[Archive]) -> Sequence[Json]:
    """Return the volumes of a pod that mounts the archives."""
    return [{"name": archive.name, "configMap": {"name": archive.config_map}} for archive in archives]


_HOLDFAST: Final = Path(__file__).parents[2]
_OURS: Final = ("controller", "ladder")
_LOCK: Final = "requirements.lock"

#: A constant time for every file: the time of a checkout is not part of the program.
_TIME: Final = (1980, 1, 1, 0, 0, 0)
_READABLE: Final = 0o100644 << 16

_FIX: Final = "Install the locked packages again: `pulumi install`, or `make venv` in a checkout."


@cache
def controller_archives() -> tuple[Archive, ...]:
    """The archives of the controller's program, in the order in which Python searches them.

    Raises ConfigError if a package is not installed here at the pinned version, or was changed after its installation.
    """
    lock = (_HOLDFAST / "controller" / _LOCK).read_text(encoding="utf-8")
    return (
        archive_of("program", own_modules(_HOLDFAST)),
        archive_of("packages", package_modules(pinned_packages(lock))),
    )


def pinned_packages(lock: str) -> Mapping[str, str]:
    """The versions of a lock file by package.

    Packages that only some versions of Python need are among them, so that the archive does not depend on the version
    that packs it.
    """
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", lock, re.MULTILINE))


def own_modules(root: Path) -> Mapping[str, bytes]:
    """The modules of this repository in the controller, by their path in the archive; `root` is the folder of the package."""
    files = [root / "__init__.py", *(found for folder in _OURS for found in (root / folder).rglob("*.py"))]
    return {f"{root.name}/{file.relative_to(root).as_posix()}": file.read_bytes() for file in files}


def package_modules(pins: Mapping[str, str]) -> Mapping[str, bytes]:
    """The modules and licenses of installed packages, by their path in the archive.

    Compiled modules are left out: each of these packages has a module in Python for each of its own.
    """
    problems: list[Problem] = []
    modules: dict[str, bytes] = {}
    for name, version in pins.items():
        installed = _installed(name)
        if installed is None or installed.version != version or not installed.files:
            problems.append(_other_version(name, version, installed))
            continue
        for file in filter(_belongs, installed.files):
            modules[file.as_posix()] = content = file.read_binary()
            if not _as_installed(file, content):
                problems.append(_changed(name, version, file))
    if problems:
        raise ConfigError(problems)
    return modules


def archive_of(name: str, modules: Mapping[str, bytes]) -> Archive:
    """Pack modules in the order of their paths."""
    packed = io.BytesIO()
    digest = hashlib.sha256()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in sorted(modules.items()):
            entry = zipfile.ZipInfo(path, _TIME)
            entry.compress_type, entry.external_attr, entry.create_system = (
                zipfile.ZIP_DEFLATED,
                _READABLE,
                3,
            )
            archive.writestr(entry, content)
            digest.update(f"{len(path)}:{path}{len(content)}:".encode() + content)
    return Archive(name=name, content=packed.getvalue(), digest=digest.hexdigest())


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


def _belongs(file: PackagePath) -> bool:
    if file.parts[0] == ".." or "__pycache__" in file.parts:
        return False
    return file.suffix == ".py" or _is_license(file)


def _is_license(file: PackagePath) -> bool:
    name = file.name.upper()
    return ".dist-info" in file.parts[0] and name.startswith(("LICENSE", "LICENCE", "COPYING", "NOTICE"))


def _as_installed(file: PackagePath, content: bytes) -> bool:
    """Whether a file matches the digest in its package's record; a package without digests is not trusted."""
    recorded = file.hash
    if recorded is None or recorded.mode != "sha256":
        return False
    found = urlsafe_b64encode(hashlib.sha256(content).digest()).decode().rstrip("=")
    return found == recorded.value


def _other_version(name: str, version: str, installed: Distribution | None) -> Problem:
    return Problem(
        field="components/pulumi_holdfast/controller/requirements.lock",
        value=f"{name}=={version}, and this environment has {installed.version if installed else 'none'}",
        allowed="the pinned packages, because the fallback controller runs with copies of them",
        fix=_FIX,
    )


def _changed(name: str, version: str, file: PackagePath) -> Problem:
    return Problem(
        field=str(file.locate()),
        value=f"a file that differs from the one of {name}=={version}",
        allowed="the file as it was installed, because the fallback controller runs with a copy of it",
        fix=_FIX,
    )
