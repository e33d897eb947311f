"""The volumes of a training pod as directories of this machine.

ConfigMaps and Secrets follow their objects (`PodSources`). A hostPath, also that of a claim's volume, must be one of the
platform's own folders: the pod runs as the user who started the platform.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.objects import namespace_of, objects
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.errors import Cancellation
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.pod_files import (
    PodFiles,
    PodSources,
    object_data,
    shown_files,
    write_volume,
)
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import (
    CannotRunError,
    Volume,
    field_of,
    service_account_of,
    volume_of,
)

_AUTHORITY: Final = "kube-root-ca.crt"
# No training on a local platform takes longer, so no token is renewed.
_TOKEN_SECONDS: Final = 24 * 3600
_SOURCES_SECONDS: Final = 2.0
_WATCHED: Final = frozenset({"emptyDir", "configMap", "secret"})


@dataclass(frozen=True, kw_only=True)
class VolumeSources:
    """Where the content of volumes comes from; `allowed` is the folder that has every path that a pod may mount."""

    client: KubeClient
    cluster: KubeconfigCluster
    allowed: Path


class PodVolumes:
    """The volumes of one pod, by name, once `present` has returned."""

    def __init__(self, pod: Json, files: PodFiles, sources: VolumeSources) -> None:
        self._pod = pod
        self._files = files
        self._from = sources
        self._folders: dict[str, Path] = {}
        self._sources: PodSources | None = None

    async def present(self, cancellation: Cancellation) -> None:
        """Write the volumes. Raises CannotRunError if an object does not exist yet, or a path is not allowed."""
        declared = objects(mapping(self._pod.get("spec")).get("volumes"))
        if self._sources is None:
            watched = [volume_of(each) for each in declared if _WATCHED & each.keys()]
            self._sources = PodSources(
                self._from.client, namespace_of(self._pod), watched, self._files, cancellation
            )
        await self._sources.present(timeout_seconds=_SOURCES_SECONDS)

    def write(self) -> None:
        """Write what does not follow an object: projected volumes, paths and claims. Blocks."""
        for each in objects(mapping(self._pod.get("spec")).get("volumes")):
            name = str(each.get("name"))
            folder = self._files.volumes / name
            if "projected" in each:
                write_volume(folder, self._projected(mapping(each["projected"])))
            elif "hostPath" in each:
                folder = self._allowed(name, str(mapping(each["hostPath"]).get("path")))
            elif "persistentVolumeClaim" in each:
                claim = str(mapping(each["persistentVolumeClaim"]).get("claimName"))
                folder = self._allowed(name, self._path_of_claim(claim))
            elif not _WATCHED & each.keys():
                raise CannotRunError(
                    f"volume {name} has type {', '.join(each.keys() - {'name'})}: use another"
                )
            self._folders[name] = folder

    def mounts(self, container: Json) -> Mapping[str, Path]:
        """The local path of each mount path of a container."""
        return {
            str(each["mountPath"]): self._folders[str(each["name"])] / str(each.get("subPath") or "")
            for each in objects(container.get("volumeMounts"))
        }

    def lookup(self, kind: str, name: str) -> Mapping[str, str] | None:
        """The data of a ConfigMap or Secret as text by key; None if it does not exist. Blocks."""
        found = self._from.client.get("v1", kind, name, namespace_of(self._pod))
        return (
            None if found is None else {k: v.decode(errors="replace") for k, v in object_data(found).items()}
        )

    def _allowed(self, name: str, path: str) -> Path:
        folder = Path(path).resolve()
        if not folder.is_relative_to(self._from.allowed):
            raise CannotRunError(
                f"volume {name}: {path} is no folder of the platform, and a training pod mounts no other one; "
                f"allowed: below {self._from.allowed}"
            )
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def _path_of_claim(self, name: str) -> str:
        client = self._from.client
        claim = client.get("v1", "PersistentVolumeClaim", name, namespace_of(self._pod)) or {}
        bound = str(mapping(claim.get("spec")).get("volumeName") or "")
        volume = (client.get("v1", "PersistentVolume", bound) if bound else None) or {}
        path = mapping(mapping(volume.get("spec")).get("hostPath")).get("path")
        if not path:
            raise CannotRunError(f"the claim {name} is not bound to a volume with a hostPath")
        return str(path)

    def _projected(self, volume: Json) -> Mapping[str, bytes]:
        files: dict[str, bytes] = {}
        for source in objects(volume.get("sources")):
            token, fields = mapping(source.get("serviceAccountToken")), mapping(source.get("downwardAPI"))
            if token:
                audience = token.get("audience")
                files[str(token["path"])] = self._from.client.service_account_token(
                    namespace_of(self._pod),
                    service_account_of(self._pod),
                    _TOKEN_SECONDS,
                    audience=str(audience) if audience else None,
                ).encode()
            for item in objects(fields.get("items")):
                path = str(mapping(item.get("fieldRef")).get("fieldPath"))
                files[str(item["path"])] = field_of(self._pod, path).encode()
            for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
                if key in source:
                    files.update(self._copied(kind, mapping(source[key])))
        return files

    def _copied(self, kind: str, source: Json) -> Mapping[str, bytes]:
        name = str(source.get("name"))
        if name == _AUTHORITY:
            return {"ca.crt": self._from.cluster.authority}
        found = self._from.client.get("v1", kind, name, namespace_of(self._pod))
        if found is None and not source.get("optional"):
            raise CannotRunError(f"{kind} {name} does not exist")
        items = {str(item["key"]): str(item["path"]) for item in objects(source.get("items"))}
        return shown_files(Volume(name=name, kind=kind, items=items), found)
