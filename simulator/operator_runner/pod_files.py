"""The files of one hosted pod: its volumes, its kubeconfig and token, and what its adaptation writes."""

import base64
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.control_plane.configuration import Cluster, render_kubeconfig
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner.mounted_files import write_volume
from holdfast.simulator.operator_runner.volumes import Volume


@dataclass(frozen=True)
class PodFiles:
    """The folder of one pod. Whoever hosts the pod removes it with the pod."""

    folder: Path

    @property
    def volumes(self) -> Path:
        """One folder per volume."""
        return self.folder / "volumes"

    @property
    def kubeconfig(self) -> Path:
        """How the process reaches the API server, as its pod's service account."""
        return self.folder / "kubeconfig"

    @property
    def token(self) -> Path:
        """The service account's token; clients read it anew every minute."""
        return self.folder / "token"

    def show(self, volume: Volume, source: "Json | None") -> bool:
        """Bring a volume up to date with the object it shows; returns whether that changed it."""
        return write_volume(self.volumes / volume.name, shown_files(volume, source))

    def write_kubeconfig(self, cluster: Cluster) -> None:
        """Write the kubeconfig that reads `token`."""
        user: Json = {"tokenFile": str(self.token)}
        self._write(self.kubeconfig, render_kubeconfig("hosted", cluster, user))

    def write_token(self, token: str) -> None:
        """Exchange the token."""
        self._write(self.token, token)

    def write_all(self, files: Mapping[Path, str]) -> None:
        """Write what an adaptation asks for, where it is not there already: a path may be shared."""
        for path, text in files.items():
            if not path.is_file() or path.read_text() != text:
                self._write(path, text)

    def texts(self) -> Mapping[Path, str]:
        """Every file of every volume, by its path."""
        paths = [path for path in self.volumes.glob("*/*") if path.is_file()]
        return {path: path.read_text(errors="replace") for path in paths}

    def remove(self) -> None:
        """Remove the pod's folder."""
        shutil.rmtree(self.folder, ignore_errors=True)

    @staticmethod
    def _write(path: Path, text: str) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_name(f"{path.name}.new")
        draft.write_text(text)
        draft.replace(path)


def shown_files(volume: Volume, source: "Json | None") -> Mapping[str, bytes]:
    """What a volume shows of a ConfigMap or Secret: file name → content."""
    content = object_data(source or {})
    if not volume.items:
        return content
    return {path: content[key] for key, path in volume.items.items() if key in content}


def object_data(source: Json) -> Mapping[str, bytes]:
    """The keys of a ConfigMap or Secret and what is under them."""
    if source.get("kind") == "Secret":
        return {key: base64.b64decode(str(value)) for key, value in mapping(source.get("data")).items()}
    binary = {key: base64.b64decode(str(value)) for key, value in mapping(source.get("binaryData")).items()}
    return {**{key: str(value).encode() for key, value in mapping(source.get("data")).items()}, **binary}
