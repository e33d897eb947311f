"""The environment of a container, resolved as a kubelet resolves it. Pure."""

import re
from collections.abc import Callable, Mapping

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.kubernetes_client.objects import mapping, sequence
from holdfast.simulator.operator_runner.containers import CannotRunError, identity_of, main_container
from holdfast.simulator.operator_runner.quantities import in_units_of

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
    for field, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
        source = mapping(entry.get(field))
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
    for field, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if field in source:
            return _key(kind, mapping(source[field]), lookup)
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
