"""Keeps the volumes of one pod as the API server has them."""

import asyncio
import logging
from collections.abc import Mapping, Sequence

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.operator_runner.containers import CannotRunError
from holdfast.simulator.operator_runner.pod_files import PodFiles, object_data
from holdfast.simulator.operator_runner.volumes import Volume
from holdfast.simulator.operator_runner.watching import Watched, Watcher

_log = logging.getLogger(__name__)


class PodSources:
    """The ConfigMaps and Secrets that a pod mounts or reads.

    Writes a mounted one's files anew whenever it changes: a controller makes its certificate, sees it arrive in
    its volume and begins to serve.
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
        """Wait until every object that must be there is there. Raises CannotRunError when it is not in time."""
        try:
            await asyncio.wait_for(self._complete.wait(), timeout=timeout_seconds)
        except TimeoutError:
            names = ", ".join(f"{volume.kind} {volume.source}" for volume in self._missing.values())
            raise CannotRunError(f"waiting for {names} in {self._namespace}") from None

    def lookup(self, kind: str, name: str) -> Mapping[str, str] | None:
        """The texts under the keys of a ConfigMap or Secret now; None where it does not exist. Blocks."""
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
        Watcher(
            self._client,
            Watched(kind=volume.kind, namespace=self._namespace, name=volume.source),
            cancellation,
            changed=lambda source: self._show(volume, source),
        )

    def _show(self, volume: Volume, source: Json) -> None:
        if self._files.show(volume, source):
            _log.info("%s %s/%s: its files are up to date", volume.kind, self._namespace, volume.source)
        self._missing.pop(volume.name, None)
        self._note_completeness()

    def _note_completeness(self) -> None:
        if not self._missing:
            self._complete.set()
