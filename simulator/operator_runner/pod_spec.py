"""Reads the parts of a pod that its host acts on. Pure."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.objects import mapping, sequence

_SUFFIXES = {
    "": Fraction(1),
    "n": Fraction(1, 10**9),
    "u": Fraction(1, 10**6),
    "m": Fraction(1, 1000),
    **{letter: Fraction(1000 ** (power + 1)) for power, letter in enumerate("kMGTPE")},
    **{f"{letter}i": Fraction(1024 ** (power + 1)) for power, letter in enumerate("KMGTPE")},
}
_QUANTITY = re.compile(r"^(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))(?P<suffix>[numkMGTPE]?|[KMGTPE]i)$")


def parse_quantity(text: str) -> Fraction:
    """The exact value of a quantity such as `500m`, `1.5Gi` or `2`.

    Raises ValueError where the text is none.
    """
    match = _QUANTITY.match(text)
    if match is None:
        raise ValueError(f"{text!r} is not a quantity: expected a number and a suffix such as m, Ki, Mi, Gi")
    return Fraction(match["number"]) * _SUFFIXES[match["suffix"]]


def in_units_of(quantity: str, divisor: str) -> int:
    """How many `divisor` a quantity is, rounded up; the divisor `0`, which charts write, means 1."""
    return math.ceil(parse_quantity(quantity) / (parse_quantity(divisor) or 1))


APP = "app.kubernetes.io/name"


class CannotRunError(Exception):
    """The process behind a pod cannot be started (yet): the text says for want of what."""


@dataclass(frozen=True, kw_only=True)
class PodIdentity:
    """What tells a pod from every other, also from a later one of its name."""

    namespace: str
    name: str
    uid: str


def identity_of(pod: Json) -> PodIdentity:
    """The identity of a pod as the API server shows it."""
    metadata = mapping(pod.get("metadata"))
    return PodIdentity(
        namespace=str(metadata["namespace"]), name=str(metadata["name"]), uid=str(metadata["uid"])
    )


def app_of(pod: Json) -> str:
    """The application the pod says it belongs to; empty where it does not say."""
    return str(mapping(mapping(pod.get("metadata")).get("labels")).get(APP, ""))


def should_run(pod: Json) -> bool:
    """Whether a controller's pod is to have its process now: it has a node, and has not ended."""
    return (
        not mapping(pod.get("metadata")).get("deletionTimestamp")
        and bool(node_of(pod))
        and mapping(pod.get("status")).get("phase") not in ("Succeeded", "Failed")
    )


def node_of(pod: Json) -> str:
    """The node the pod is on; empty before it has one."""
    return str(mapping(pod.get("spec")).get("nodeName") or "")


def main_container(pod: Json) -> Json:
    """The container whose process is run: the first."""
    return mapping(next(iter(sequence(mapping(pod.get("spec")).get("containers"))), None))


def service_account_of(pod: Json) -> str:
    """The service account whose rights the process has."""
    return str(mapping(pod.get("spec")).get("serviceAccountName") or "default")


def grace_seconds_of(pod: Json) -> int:
    """How long the process may take to end after SIGTERM."""
    grace = mapping(pod.get("spec")).get("terminationGracePeriodSeconds")
    return grace if isinstance(grace, int) else 30


def restarts_of(pod: Json) -> int:
    """How often the process was started again, as the API server knows."""
    status = mapping(next(iter(sequence(mapping(pod.get("status")).get("containerStatuses"))), None))
    restarts = status.get("restartCount")
    return restarts if isinstance(restarts, int) else 0


def container_ports(container: Json) -> Mapping[str, int]:
    """The ports a container declares: by name, and by number for those without one."""
    ports: dict[str, int] = {}
    for each in sequence(container.get("ports")):
        number = mapping(each).get("containerPort")
        if isinstance(number, int):
            ports[str(mapping(each).get("name") or number)] = number
    return ports


@dataclass(frozen=True, kw_only=True)
class Probe:
    """An HTTP readiness probe of a container port."""

    port: int
    path: str


def readiness_probe(container: Json) -> Probe | None:
    """The container's HTTP readiness probe; None where it has none, and is ready when it runs."""
    get = mapping(mapping(container.get("readinessProbe")).get("httpGet"))
    port = get.get("port")
    if isinstance(port, str):
        port = container_ports(container).get(port)
    return Probe(port=port, path=str(get.get("path") or "/")) if isinstance(port, int) else None


# kind, name → the texts under its keys; None where the object is not there.
Lookup = Callable[[str, str], Mapping[str, str] | None]

_REFERENCE = re.compile(r"\$\$|\$\((?P<name>[A-Za-z_.\-][\w.\-]*)\)")


def resolve_environment(pod: Json, lookup: Lookup) -> Mapping[str, str]:
    """The variables of the pod's container: `envFrom` first, then `env`, whose later entries see the earlier.

    Raises CannotRunError where a value comes from something that does not exist.
    """
    container = main_container(pod)
    variables: dict[str, str] = {}
    for each in sequence(container.get("envFrom")):
        variables.update(_all_of(mapping(each), lookup))
    for each in sequence(container.get("env")):
        entry = mapping(each)
        value = _value_of(entry, pod, lookup)
        if value is not None:
            variables[str(entry["name"])] = expand(value, variables)
    return variables


def expand(text: str, variables: Mapping[str, str]) -> str:
    """Replace `$(NAME)` by the variable's value; `$$` is a dollar, and an unknown name stays as it is."""

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


def _value_of(entry: Json, pod: Json, lookup: Lookup) -> str | None:
    source = mapping(entry.get("valueFrom"))
    if not source:
        return str(entry.get("value") or "")
    if "fieldRef" in source:
        return _field(pod, str(mapping(source["fieldRef"])["fieldPath"]))
    if "resourceFieldRef" in source:
        return _resource(main_container(pod), mapping(source["resourceFieldRef"]))
    for reference, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if reference in source:
            return _key(kind, mapping(source[reference]), lookup)
    raise CannotRunError(
        f"variable {entry.get('name')} comes from {', '.join(source)}, which is unknown here"
    )


def _field(pod: Json, path: str) -> str:
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
    # A kubelet would name its node's size here. No node stands behind the process: 0, "not limited".
    return str(in_units_of(str(quantity or "0"), str(reference.get("divisor") or "0")))


def _key(kind: str, reference: Json, lookup: Lookup) -> str | None:
    name, key = str(reference.get("name")), str(reference.get("key"))
    value = (lookup(kind, name) or {}).get(key)
    if value is None and not reference.get("optional"):
        raise CannotRunError(f"{kind} {name} has no key {key}")
    return value


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
