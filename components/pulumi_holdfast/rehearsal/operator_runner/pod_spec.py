"""Reads a pod: identity, container, ports, probe, environment variables and volumes. Pure."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.quantities import parse_quantity


def in_units_of(quantity: str, divisor: str) -> int:
    """A quantity in units of `divisor`, rounded up; the divisor `0`, which charts use, means 1."""
    return math.ceil(parse_quantity(quantity) / (parse_quantity(divisor) or 1))


APP = "app.kubernetes.io/name"


class CannotRunError(Exception):
    """The process of a pod cannot start yet; the message says what is missing."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """Identifies a pod, also among pods that had its name earlier."""

    namespace: str
    name: str
    uid: str


def identity_of(pod: Json) -> PodIdentity:
    """The identity of a pod."""
    metadata = mapping(pod.get("metadata"))
    return PodIdentity(
        namespace=str(metadata["namespace"]), name=str(metadata["name"]), uid=str(metadata["uid"])
    )


def app_of(pod: Json) -> str:
    """The value of the application label; empty if it is not set."""
    return str(mapping(mapping(pod.get("metadata")).get("labels")).get(APP, ""))


def should_run(pod: Json) -> bool:
    """Whether the process of a pod should run: the pod is scheduled, not deleted and not finished."""
    return (
        not mapping(pod.get("metadata")).get("deletionTimestamp")
        and bool(node_of(pod))
        and mapping(pod.get("status")).get("phase") not in ("Succeeded", "Failed")
    )


def main_container(pod: Json) -> Json:
    """The first container, whose process runs."""
    return mapping(next(iter(sequence(mapping(pod.get("spec")).get("containers"))), None))


def service_account_of(pod: Json) -> str:
    """The service account of the pod."""
    return str(mapping(pod.get("spec")).get("serviceAccountName") or "default")


def grace_seconds_of(pod: Json) -> int:
    """The termination grace period in seconds."""
    grace = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    return grace if isinstance(grace, int) else 30


def restarts_of(pod: Json) -> int:
    """The restart count in the status of the pod."""
    status = mapping(next(iter(sequence(mapping(pod.get("status")).get("containerStatuses"))), None))
    restarts = status.get("restartCount")
    return restarts if isinstance(restarts, int) else 0


def container_ports(container: Json) -> Mapping[str, int]:
    """The ports of a container by name, or by number for unnamed ports."""
    ports: dict[str, int] = {}
    for each in sequence(container.get("ports")):
        number = mapping(each).get("containerPort")
        if isinstance(number, int):
            ports[str(mapping(each).get("name") or number)] = number
    return ports


@dataclass(frozen=True, kw_only=True)
class Probe:
    """The HTTP readiness probe of a container port."""

    port: int
    path: str


def readiness_probe(container: Json) -> Probe | None:
    """The HTTP readiness probe of a container; None if it has none, and is ready when it runs."""
    get = mapping(mapping(container.get("readinessProbe")).get("httpGet"))
    port = get.get("port")
    if isinstance(port, str):
        port = container_ports(container).get(port)
    return Probe(port=port, path=str(get.get("path") or "/")) if isinstance(port, int) else None


# The lifetime of a projected token that does not name one.
_TOKEN_SECONDS: Final = 3600

# Maps kind and name to the data of the object; None if it does not exist.
Lookup = Callable[[str, str], Mapping[str, str] | None]

_REFERENCE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_.\-][\w.\-]*)\)")


def resolve_environment(pod: Json, lookup: Lookup, container: Json | None = None) -> Mapping[str, str]:
    """The environment variables of a container, by default the first: `envFrom` first, then `env` in order.

    Raises CannotRunError if a value comes from an object that does not exist.
    """
    container = container or main_container(pod)
    variables: dict[str, str] = {}
    for each in sequence(container.get("envFrom")):
        variables.update(_all_of(mapping(each), lookup))
    for each in sequence(container.get("env")):
        entry = mapping(each)
        value = _value_of(entry, pod, container, lookup)
        if value is not None:
            variables[str(entry["name"])] = expand(value, variables)
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` with the value of the variable, and `$$` with a dollar; keep unknown names."""

    def replacement(match: re.Match[str]) -> str:
        name = match["name"]
        return "$" if name is None else variables.get(name, match[0])

    return _REFERENCE.sub(replacement, text)


def _all_of(entry: Json, lookup: Lookup) -> Mapping[str, str]:
    prefix = str(entry.get("prefix") or "")
    for reference, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        source = mapping(entry.get(reference))
        if source:
            found = lookup(kind, str(source.get("name")))
            if found is None and not source.get("optional"):
                raise CannotRunError(f"{kind} {source.get('name')} does not exist")
            return {f"{prefix}{key}": value for key, value in (found or {}).items()}
    return {}


def _value_of(entry: Json, pod: Json, container: Json, lookup: Lookup) -> str | None:
    source = mapping(entry.get("valueFrom"))
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return field_of(pod, str(mapping(source["fieldRef"])["fieldPath"]))
    if "resourceFieldRef" in source:
        return _resource(container, mapping(source["resourceFieldRef"]))
    for reference, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference in source:
            return _key(kind, mapping(source[reference]), lookup)
    raise CannotRunError(
        f"variable {entry.get('name')} comes from {', '.join(source)}, which the operator runner does not support"
    )


def field_of(pod: Json, path: str) -> str:
    """The value of a field of the downward API. Raises CannotRunError if the pod has none."""
    keyed = re.fullmatch(r"metadata\.(labels|annotations)\['(.+)'\]", path)
    if keyed:
        return str(mapping(mapping(pod.get("metadata")).get(keyed[1])).get(keyed[2], ""))
    value: JsonValue = pod
    for part in path.split("."):
        value = mapping(value).get(part)
    if value is None:
        raise CannotRunError(f"the pod {identity_of(pod).name} has no {path}")
    return str(value)


def _resource(container: Json, reference: Json) -> str:
    kind, _, resource = str(reference["resource"]).partition(".")
    quantity = mapping(mapping(container.get("resources")).get(kind)).get(resource)
    # A kubelet would return the capacity of the node. The process has no node, so return 0 for "not limited".
    return str(in_units_of(str(quantity or "0"), str(reference.get("divisor") or "0")))


def _key(kind: str, reference: Json, lookup: Lookup) -> str | None:
    name, key = str(reference.get("name")), str(reference.get("key"))
    value = (lookup(kind, name) or {}).get(key)
    if value is None and not reference.get("optional"):
        raise CannotRunError(f"{kind} {name} has no key {key}")
    return value


@dataclass(frozen=True, kw_only=True)
class Volume:
    """A volume of the kind ConfigMap, Secret or Empty.

    `items` maps keys to file names; if empty, each key is a file name.
    """

    name: str
    kind: str
    source: str = ""
    optional: bool = False
    items: Mapping[str, str] = field(default_factory=dict[str, str])


def volumes_of(pod: Json) -> list[Volume]:
    """The volumes that the container mounts, without projected ones. Raises CannotRunError for an unsupported volume type."""
    return [volume_of(each) for each in _mounted(pod) if "projected" not in each]


@dataclass(frozen=True, kw_only=True)
class ProjectedToken:
    """A token of the pod's service account for another audience, in the file `path` of a volume."""

    volume: str
    path: str
    audience: str
    seconds: int


def projected_tokens(pod: Json) -> list[ProjectedToken]:
    """The tokens for other audiences that the container mounts.

    Not the volume that the API server adds to every pod: the kubeconfig replaces it.
    """
    return [
        ProjectedToken(
            volume=str(volume["name"]),
            path=str(token["path"]),
            audience=str(token["audience"]),
            seconds=int(str(token.get("expirationSeconds") or _TOKEN_SECONDS)),
        )
        for volume in _mounted(pod)
        for source in sequence(mapping(volume.get("projected")).get("sources"))
        if (token := mapping(mapping(source).get("serviceAccountToken"))).get("audience")
    ]


def _mounted(pod: Json) -> list[Json]:
    names = {str(mapping(each).get("name")) for each in sequence(main_container(pod).get("volumeMounts"))}
    declared = [mapping(each) for each in sequence(mapping(pod.get("spec")).get("volumes"))]
    return [each for each in declared if each.get("name") in names]


def mounts_of(pod: Json, folder: Path) -> Mapping[str, Path]:
    """The local path of each mount path, for volumes below `folder`."""
    names = {each.name for each in volumes_of(pod)} | {each.volume for each in projected_tokens(pod)}
    mounts: dict[str, Path] = {}
    for each in sequence(main_container(pod).get("volumeMounts")):
        mount = mapping(each)
        if mount.get("name") in names:
            mounts[str(mount["mountPath"])] = folder / str(mount["name"]) / str(mount.get("subPath") or "")
    return mounts


def on_this_machine(text: str, mounts: Mapping[str, Path]) -> str:
    """Replace each path below a mount in an argument, a variable or a script with its local path."""
    if not mounts:
        return text
    paths = "|".join(re.escape(path.rstrip("/")) for path in sorted(mounts, key=len, reverse=True))
    local = {path.rstrip("/"): str(folder) for path, folder in mounts.items()}
    # For the mount /etc/con, neither /etc/config nor data/etc/con is a match.
    return re.sub(rf"(?<![\w./-])(?:{paths})(?=[/\s\"':;,]|$)", lambda match: local[match[0]], text)


def volume_of(volume: Json) -> Volume:
    """A declared volume. Raises CannotRunError for an unsupported type."""
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
    raise CannotRunError(f"volume {name} has type {kinds}; only configMap, secret and emptyDir are supported")
