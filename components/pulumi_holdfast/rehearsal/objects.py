"""Reads fields of JSON objects, and summarizes the state of an object for messages."""

from datetime import UTC, datetime

from pulumi_holdfast.ladder.json import Json, mapping, sequence


def now() -> str:
    """Return the current time in the format of Kubernetes."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def identity(obj: Json) -> str:
    """Return `Kind namespace/name`, or `Kind name` for a cluster-scoped object."""
    metadata = mapping(obj.get("metadata"))
    name, namespace = metadata.get("name"), metadata.get("namespace")
    return f"{obj.get('kind')} {namespace}/{name}" if namespace else f"{obj.get('kind')} {name}"


def summarize(obj: "Json | None") -> str:
    """Return one line with the deletion state, the phase and the conditions of an object."""
    if obj is None:
        return "it does not exist"
    metadata, status = mapping(obj.get("metadata")), mapping(obj.get("status"))
    facts: list[str] = []
    if metadata.get("deletionTimestamp"):
        finalizers = ", ".join(map(str, sequence(metadata.get("finalizers"))))
        facts.append(f"being deleted, finalizers [{finalizers}]")
    if status.get("phase"):
        facts.append(f"phase {status['phase']}")
    facts += [_condition(mapping(each)) for each in sequence(status.get("conditions"))]
    return f"{identity(obj)}: {'; '.join(facts) or 'no status'}"


def _condition(condition: Json) -> str:
    words = f"{condition.get('type')}={condition.get('status')}"
    detail = condition.get("message") or condition.get("reason")
    return f"{words} ({detail})" if detail else words
