"""The files of one pod: volumes that follow their ConfigMaps and Secrets, the kubeconfig and the token."""

import asyncio
import base64
import logging
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster, render_kubeconfig
from pulumi_holdfast.rehearsal.errors import Cancellation, KubeCancelled
from pulumi_holdfast.rehearsal.kubernetes import KubeClient, WatchThread
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import CannotRunError, Volume
from pulumi_holdfast.rehearsal.watches import Event, ObjectSelector

CURRENT = "..data"


def write_volume(folder: Path, files: Mapping[str, bytes]) -> bool:
    """Make `folder` contain exactly `files` (name → content); returns whether anything changed.

    Like a kubelet, it replaces one link to a content folder, so a certificate and its key change together. Only the
    owner can read the files.
    """
    if _shown(folder) == files:
        return False
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    before = (folder / CURRENT).readlink() if (folder / CURRENT).is_symlink() else None
    content = Path(mkdtemp(prefix="..content-", dir=folder))
    for name, data in files.items():
        with os.fdopen(os.open(content / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(data)
    _point(folder / CURRENT, content.name)
    for stale in [
        each for each in folder.iterdir() if not each.name.startswith("..") and each.name not in files
    ]:
        stale.unlink()
    for name in files:
        _point(folder / name, f"{CURRENT}/{name}")
    if before is not None:
        shutil.rmtree(folder / before, ignore_errors=True)
    return True


def _shown(folder: Path) -> Mapping[str, bytes] | None:
    current = folder / CURRENT
    return {each.name: each.read_bytes() for each in current.iterdir()} if current.is_dir() else None


def _point(link: Path, target: str) -> None:
    draft = link.with_name(f"..new-{link.name}")
    draft.unlink(missing_ok=True)
    draft.symlink_to(target)
    draft.replace(link)


@dataclass(frozen=True)
class PodFiles:
    """The folder of one pod. The owner removes it with the pod."""

    folder: Path

    @property
    def volumes(self) -> Path:
        """One folder per volume."""
        return self.folder / "volumes"

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the process, with the service account of the pod."""
        return self.folder / "kubeconfig"

    @property
    def token(self) -> Path:
        """The token of the service account; clients read it again every minute."""
        return self.folder / "token"

    def show(self, volume: Volume, source: "Json | None") -> bool:
        """Update a volume from its ConfigMap or Secret; returns whether it changed."""
        return write_volume(self.volumes / volume.name, shown_files(volume, source))

    def write_kubeconfig(self, cluster: KubeconfigCluster) -> None:
        """Write the kubeconfig that reads `token`."""
        user: Json = {"tokenFile": str(self.token)}
        self._write(self.kubeconfig, render_kubeconfig("hosted", cluster, user))

    def write_token(self, token: str) -> None:
        """Replace the token."""
        self._write(self.token, token)

    def write_projected(self, volume: str, tokens: Mapping[str, str]) -> None:
        """Replace the tokens of a volume by the names of their files."""
        write_volume(self.volumes / volume, {name: token.encode() for name, token in tokens.items()})

    def write_all(self, files: Mapping[Path, str]) -> None:
        """Write files that do not have the content yet: a path may be shared."""
        for path, text in files.items():
            if not path.is_file() or path.read_text() != text:
                self._write(path, text)

    def texts(self) -> Mapping[Path, str]:
        """The content of every file of every volume by its path."""
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
    """The files of a volume from its ConfigMap or Secret: file name → content."""
    content = object_data(source or {})
    if not volume.items:
        return content
    return {path: content[key] for key, path in volume.items.items() if key in content}


def object_data(source: Json) -> Mapping[str, bytes]:
    """The decoded data of a ConfigMap or Secret by key."""
    if source.get("kind") == "Secret":
        return {key: base64.b64decode(str(value)) for key, value in mapping(source.get("data")).items()}
    binary = {key: base64.b64decode(str(value)) for key, value in mapping(source.get("binaryData")).items()}
    return {**{key: str(value).encode() for key, value in mapping(source.get("data")).items()}, **binary}


_log = logging.getLogger(__name__)


def on_this_loop(handle: Callable[[Event], None]) -> Callable[[Event], None]:
    """Return what passes the events of a watch to `handle` in the running event loop."""
    loop = asyncio.get_running_loop()

    def take(event: Event) -> None:
        try:
            loop.call_soon_threadsafe(handle, event)
        except RuntimeError:
            raise KubeCancelled from None  # the event loop is closed, because the runner stops

    return take


class PodSources:
    """The ConfigMaps and Secrets that a pod mounts or reads.

    Updates the files of a mounted object whenever it changes: a controller creates its certificate, waits for it in
    its volume, and then serves.
    """

    def __init__(
        self,
        client: KubeClient,
        namespace: str,
        volumes: Sequence[Volume],
        files: PodFiles,
        cancellation: Cancellation,
    ) -> None:
        self._client = client
        self._namespace = namespace
        self._files = files
        self._missing: dict[str, Volume] = {}
        self._complete = asyncio.Event()
        for volume in volumes:
            self._follow(volume, cancellation)
        self._note_completeness()

    async def present(self, *, timeout_seconds: float) -> None:
        """Wait until every required object exists. Raises CannotRunError after the timeout."""
        try:
            await asyncio.wait_for(self._complete.wait(), timeout=timeout_seconds)
        except TimeoutError:
            names = ", ".join(f"{volume.kind} {volume.source}" for volume in self._missing.values())
            raise CannotRunError(f"waiting for {names} in {self._namespace}") from None

    def lookup(self, kind: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap or Secret as text by key; None if it does not exist. Blocks."""
        found = self._client.get("v1", kind, name, self._namespace)
        if found is None:
            return None
        return {key: data.decode(errors="replace") for key, data in object_data(found).items()}

    def _follow(self, volume: Volume, cancellation: Cancellation) -> None:
        if volume.kind == "Empty" or volume.optional:
            self._files.show(volume, None)
        else:
            self._missing[volume.name] = volume
        if volume.kind == "Empty":
            return
        selection = ObjectSelector(namespace=self._namespace, name=volume.source)
        client = self._client.under(cancellation)
        take = on_this_loop(lambda event: self._show(volume, event))
        WatchThread(client, "v1", volume.kind, take, selection).start()

    def _show(self, volume: Volume, event: Event) -> None:
        what, source = event
        if what not in ("ADDED", "MODIFIED"):
            return
        if self._files.show(volume, source):
            _log.info("%s %s/%s: files updated", volume.kind, self._namespace, volume.source)
        self._missing.pop(volume.name, None)
        self._note_completeness()

    def _note_completeness(self) -> None:
        if not self._missing:
            self._complete.set()
