"""Volumes of a pod: which objects they show, and where a container sees them. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.containers import CannotRunError, main_container


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume: `kind` is ConfigMap, Secret or Empty.

    `items` maps keys of the object to file names; empty shows every key under its own name.
    """

    name: str
    kind: str
    source: str = ""
    optional: bool = False
    items: Mapping[str, str] = field(default_factory=dict[str, str])


def volumes_of(pod: Json) -> list[Volume]:
    """The pod's volumes that its container mounts.

    Raises CannotRunError for a kind of volume this host cannot make.
    """
    mounted = {str(mapping(each).get("name")) for each in sequence(main_container(pod).get("volumeMounts"))}
    declared = [mapping(each) for each in sequence(mapping(pod.get("spec")).get("volumes"))]
    # The API server adds a volume with the service account's token to each pod; the kubeconfig stands for it.
    wanted = [each for each in declared if each.get("name") in mounted and "projected" not in each]
    return [_volume(each) for each in wanted]


def mounts_of(pod: Json, folder: Path) -> Mapping[str, Path]:
    """Where each path the container mounts is on this machine, if its volumes are kept under `folder`."""
    names = {volume.name for volume in volumes_of(pod)}
    mounts: dict[str, Path] = {}
    for each in sequence(main_container(pod).get("volumeMounts")):
        mount = mapping(each)
        if mount.get("name") in names:
            mounts[str(mount["mountPath"])] = folder / str(mount["name"]) / str(mount.get("subPath") or "")
    return mounts


def on_this_machine(text: str, mounts: Mapping[str, Path]) -> str:
    """Replace in an argument or variable each path below a mount by where it is on this machine."""
    for path in sorted(mounts, key=len, reverse=True):
        head, found, tail = text.partition(path.rstrip("/"))
        # /etc/config is not below /etc/con, and data/etc/config is not it either.
        if found and tail[:1] in ("", "/", ",") and head[-1:] in ("", "=", ",", ":"):
            return f"{head}{mounts[path]}{on_this_machine(tail, mounts)}"
    return text


def _volume(volume: Json) -> Volume:
    name = str(volume["name"])
    if "emptyDir" in volume:
        return Volume(name=name, kind="Empty")
    for field_name, kind, key in (("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName")):
        if field_name in volume:
            source = mapping(volume[field_name])
            items = {
                str(mapping(item)["key"]): str(mapping(item)["path"])
                for item in sequence(source.get("items"))
            }
            optional = bool(source.get("optional"))
            return Volume(name=name, kind=kind, source=str(source.get(key)), optional=optional, items=items)
    kinds = ", ".join(key for key in volume if key != "name")
    raise CannotRunError(f"volume {name} is a {kinds}: only configMap, secret and emptyDir can be made here")
