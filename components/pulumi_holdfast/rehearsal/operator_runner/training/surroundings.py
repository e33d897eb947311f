"""What a container finds on this machine: the programs of its image, its mounts, and the addresses of its peers.

No container runtime, no root and no file of the system is needed: paths and names in the command and the variables of a
container are replaced. What a program has as a constant, for example the path of its token, is not.
"""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

import psutil

from pulumi_holdfast.controller.kube.objects import labels_of, name_of, namespace_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import (
    CannotRunError,
    Lookup,
    expand,
    on_this_machine,
    resolve_environment,
)
from pulumi_holdfast.rehearsal.operator_runner.process import Command
from pulumi_holdfast.rehearsal.operator_runner.training.ray_node import (
    head_name,
    is_ray_node,
    on_shared_machine,
)

ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
#: The variable of every training process: its runner, pod and container. What leaves its session is found by it.
MARK: Final = "HOLDFAST_POD_RUNNER"


class ImagePullError(CannotRunError):
    """The image of a container cannot be had here; the message says why."""


class ProgramMissingError(Exception):
    """The program of a container is not in its image."""


def end_marked(mark: str) -> None:
    """Kill the processes whose mark begins so, however they have detached themselves. Blocks."""
    killed: set[psutil.Process] = set()
    # Again, as long as there are new ones: what is killed may have been starting another.
    while found := {each for each in psutil.process_iter() if _mark_of(each).startswith(f"{mark}/")} - killed:
        for each in found:
            with contextlib.suppress(psutil.Error):
                each.kill()
        killed |= found


def _mark_of(process: psutil.Process) -> str:
    try:
        return process.environ().get(MARK, "")
    except (psutil.Error, OSError):
        return ""


def address_of(name: str) -> str:
    """The loopback address of a name in the cluster.

    It depends on the name alone, so peers know it before the pod exists, and a restarted pod keeps it.
    """
    digest = hashlib.sha256(name.encode()).digest()
    return f"127.{128 + digest[0] % 127}.{digest[1]}.{1 + digest[2] % 254}"


def shown_address(address: str) -> str:
    """The address that the API server shows for a loopback address, which EndpointSlices refuse."""
    return f"10{address.removeprefix('127')}"


def own_address(pod: Json, services: Sequence[Json]) -> str:
    """The address of a pod: that of its DNS name, else of a Service that selects it, else one of its own."""
    spec, namespace = mapping(pod.get("spec")), namespace_of(pod)
    if is_ray_node(pod):
        return address_of(head_name(pod))
    if spec.get("subdomain"):
        return address_of(f"{spec.get('hostname') or name_of(pod)}.{spec['subdomain']}.{namespace}")
    labels = labels_of(pod)
    for each in services:
        selector = mapping(mapping(each.get("spec")).get("selector"))
        if selector and selector.items() <= labels.items():
            return address_of(f"{name_of(each)}.{namespace}")
    return address_of(uid_of(pod))


def with_addresses(text: str, namespace: str, services: Collection[str]) -> str:
    """Replace each DNS name of a pod or Service by its address; a bare word is too likely to be no host name."""
    if not services:
        return text
    names = "|".join(sorted(map(re.escape, services), key=len, reverse=True))
    domain = rf"\.{re.escape(namespace)}(?:\.svc(?:\.cluster\.local)?)?"
    pattern = rf"(?<![\w.-])(?:([a-z0-9][-a-z0-9]*)\.)?({names})({domain})?(?![\w.-])"

    def found(match: re.Match[str]) -> str:
        host, service, rest = match.groups()
        if not (host or rest):
            return match[0]
        return address_of(f"{host}.{service}.{namespace}" if host else f"{service}.{namespace}")

    return re.sub(pattern, found, text)


#: The Python of images with a framework, where another one than the platform's has them.
FRAMEWORKS: Final = "HOLDFAST_FRAMEWORKS_PYTHON"
#: The modules that an image must have here, by the beginning of its name.
IMAGES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "python:": (),
        "pytorch/pytorch:": ("torch",),
        "rayproject/ray:": ("ray",),
        "tensorflow/tensorflow:": ("tensorflow",),
    }
)
_SCRIPTS: Final = ("ray", "torchrun")

_PIP: Final = '''#!{python}
"""In place of pip: what is requested must be installed already."""
import importlib.metadata, re, sys

missing = []
for word in sys.argv[2:]:
    name, _, version = re.sub(r"\\[.*?\\]", "", word).partition("==")
    if not word.startswith("-"):
        try:
            if version not in ("", importlib.metadata.version(name)):
                missing.append(f"{{word}} (here: {{importlib.metadata.version(name)}})")
        except importlib.metadata.PackageNotFoundError:
            missing.append(word)
sys.exit(f"pip installs nothing on the local platform, which has no {{', '.join(missing)}}" if missing else 0)
'''


def image_programs(image: str, folder: Path) -> Path:
    """The folder of the programs of an image, made below `folder` at its first use. Raises ImagePullError."""
    prefix = next((each for each in IMAGES if image.startswith(each)), None)
    if prefix is None:
        known = ", ".join(f"{each}…" for each in IMAGES)
        raise ImagePullError(f"no environment here stands for the image {image}; use one of {known}")
    python = Path(os.environ.get(FRAMEWORKS) or sys.executable) if IMAGES[prefix] else Path(sys.executable)
    missing = [each for each in IMAGES[prefix] if not _has_module(python, each)]
    if missing:
        raise ImagePullError(
            f"the image {image} needs the module {', '.join(missing)}, which is not installed here: "
            f"install it for {python}, or name the Python that has it in {FRAMEWORKS}"
        )
    made = folder / re.sub(r"\W", "-", prefix)
    if not made.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        draft = Path(tempfile.mkdtemp(dir=folder))
        _write_programs(draft, python)
        try:
            draft.rename(made)
        except OSError:  # another pod's thread was first
            shutil.rmtree(draft)
    return made


def _has_module(python: Path, name: str) -> bool:
    found = f"import importlib.util, sys; sys.exit(importlib.util.find_spec('{name}') is None)"
    return subprocess.run([python, "-c", found], check=False).returncode == 0


def _write_programs(folder: Path, python: Path) -> None:
    for name in ("python", "python3"):
        (folder / name).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    (folder / "pip").write_text(_PIP.format(python=python))
    for each in folder.iterdir():
        each.chmod(0o755)
    for script in _SCRIPTS:
        if python.with_name(script).is_file():
            (folder / script).symlink_to(python.with_name(script))


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What the containers of one pod find: the pod's `folder`, its `address`, and the `services` of its namespace by name.

    `images` is the folder of the programs of all images, `mark` begins the value of MARK.
    """

    cluster: KubeconfigCluster
    images: Path
    mark: str
    folder: Path
    address: str
    services: frozenset[str]

    def command(
        self, pod: Json, container: Json, mounts: Mapping[str, Path], lookup: Lookup, log: Path
    ) -> Command:
        """The process of a container. Blocks.

        Raises CannotRunError if an object that it reads or its image is missing, ProgramMissingError for its program.
        """
        words = [str(each) for each in sequence(container.get("command"))]
        if not words:
            raise CannotRunError("the entrypoint of an image is not known here: set `command`")
        programs = image_programs(str(container.get("image")), self.images)
        status: Json = {**mapping(pod.get("status")), "podIP": self.address, "hostIP": "127.0.0.1"}
        given = resolve_environment({**pod, "status": status}, lookup, container)
        variables = {name: self.here(value, pod, mounts) for name, value in given.items()}
        words += [str(each) for each in sequence(container.get("args"))]
        program, *args = (self.here(expand(each, given), pod, mounts) for each in words)
        mark = f"{self.mark}/{uid_of(pod)}/{container.get('name')}/"
        environment = {**self._base(pod, programs, mounts), **variables, MARK: mark}
        found = shutil.which(program, path=environment["PATH"])
        if found is None:
            raise ProgramMissingError(f'exec: "{program}": executable file not found in $PATH')
        folder = self._working_folder(str(container.get("workingDir") or ""), mounts)
        return Command(
            program=Path(found), args=args, variables=environment, folder=folder, log=log, headed=False
        )

    def here(self, text: str, pod: Json, mounts: Mapping[str, Path]) -> str:
        """Replace the paths below mounts and the names of peers in a text."""
        found = with_addresses(on_this_machine(text, mounts), namespace_of(pod), self.services)
        return on_shared_machine(found, pod, self.address) if is_ray_node(pod) else found

    def _base(self, pod: Json, programs: Path, mounts: Mapping[str, Path]) -> Mapping[str, str]:
        """The variables of every training process. It gets no variable of the user."""
        host, _, port = self.cluster.server.removeprefix("https://").rpartition(":")
        account = {"SERVICE_ACCOUNT_FOLDER": str(mounts[ACCOUNT])} if ACCOUNT in mounts else {}
        return {
            "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(self.folder),
            "HOSTNAME": str(mapping(pod.get("spec")).get("hostname") or name_of(pod)),
            "KUBERNETES_SERVICE_HOST": host,
            "KUBERNETES_SERVICE_PORT": port,
            # Many pods share the cores of this machine, and its loopback interface.
            "OMP_NUM_THREADS": "1",
            "GLOO_SOCKET_IFNAME": "lo",
            **account,
        }

    def _working_folder(self, path: str, mounts: Mapping[str, Path]) -> Path:
        replaced = on_this_machine(path, mounts)
        folder = Path(replaced) if replaced != path else self.folder / "root" / path.lstrip("/")
        folder.mkdir(parents=True, exist_ok=True)
        return folder
