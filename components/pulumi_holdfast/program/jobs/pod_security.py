"""Reads which pods the Pod Security standard of their namespace rejects: the API server creates none of them, and the job waits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.namespaces.ladders import NAMESPACE_TYPE
from pulumi_holdfast.program.resources import StackResource, Value, at, known_items, named, text_at, texts_at

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_RESTRICTED: Final = "restricted"
_STANDARDS: Final = frozenset({"baseline", _RESTRICTED})
_OF_HOST: Final = ("hostNetwork", "hostPID", "hostIPC")
#: The capabilities that the standard `baseline` lets containers add.
_BASELINE: Final = frozenset({
    "AUDIT_WRITE", "CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "MKNOD", "NET_BIND_SERVICE", "SETFCAP",
    "SETGID", "SETPCAP", "SETUID", "SYS_CHROOT",
})  # fmt: skip


def rejected_by_standard(
    spec: Value, job: StackResource, namespace: str, resources: Sequence[StackResource]
) -> Iterator[str]:
    """Yield that the namespace of a job enforces a standard that does not allow these pods."""
    for each in named(resources, NAMESPACE_TYPE, namespace):
        standard = text_at(each.props, "metadata", "labels", _ENFORCE)
        if standard in _STANDARDS and is_same_cluster(each, job, resources) is True:
            found = [*_beyond_baseline(spec), *(_beyond_restricted(spec) if standard == _RESTRICTED else ())]
            if found:
                yield (
                    f"the namespace enforces the Pod Security standard {standard}, so the API server rejects pods with "
                    f"{', '.join(dict.fromkeys(found))}, unless admission changes them"
                )


def _beyond_baseline(spec: Value) -> Iterator[str]:
    yield from (field for field in _OF_HOST if at(spec, field) is True)
    if any(at(each, "hostPath") is not None for each in known_items(spec, "volumes")):
        yield "hostPath volumes"
    for each in _containers(spec):
        if at(each, "securityContext", "privileged") is True:
            yield "privileged containers"
        if any(at(port, "hostPort") not in (None, 0, UNKNOWN) for port in known_items(each, "ports")):
            yield "host ports"
        added = texts_at(each, "securityContext", "capabilities", "add")
        for name in sorted((added or frozenset()) - _BASELINE) if added is not UNKNOWN else ():
            yield f"capability {name}"


def _beyond_restricted(spec: Value) -> Iterator[str]:
    of_pod = at(spec, "securityContext")
    for each in _containers(spec):
        own = at(each, "securityContext")
        if at(own, "allowPrivilegeEscalation") not in (False, UNKNOWN):
            yield "no `allowPrivilegeEscalation: false`"
        if _first("runAsNonRoot", own, of_pod) not in (True, UNKNOWN):
            yield "no `runAsNonRoot: true`"
        if at(_first("seccompProfile", own, of_pod), "type") not in ("RuntimeDefault", "Localhost", UNKNOWN):
            yield "no `seccompProfile`"
        dropped = texts_at(own, "capabilities", "drop")
        if dropped is not UNKNOWN and "ALL" not in (dropped or ()):
            yield "capabilities that are not dropped"


def _first(field: str, own: Value, of_pod: Value) -> Value:
    found = at(own, field)
    return at(of_pod, field) if found is None else found


def _containers(spec: Value) -> Iterator[Value]:
    for kind in ("initContainers", "containers"):
        yield from known_items(spec, kind)
