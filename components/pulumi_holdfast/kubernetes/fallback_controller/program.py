"""The controller's program on a cluster: archives of Python modules in ConfigMaps, and how a container runs them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pulumi_holdfast.kubernetes.operators.pod_settings import image
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
