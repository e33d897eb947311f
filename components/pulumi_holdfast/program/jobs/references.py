"""Reads which objects the pods of a job name: without them the pods are refused, or wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.ladder.labels import CHECKPOINTS
from pulumi_holdfast.program.clusters import is_same_cluster
from pulumi_holdfast.program.jobs.jobs import DeclaredJob
from pulumi_holdfast.program.resources import StackResource, Value, at, known_items, named, text_at

_CONFIG_MAP: Final = "ConfigMap"
_SECRET: Final = "Secret"  # noqa: S105 - a kind of objects
_ACCOUNT: Final = "ServiceAccount"
#: Where a volume, or a part of a projected one, names an object.
_VOLUMES: Final = (
    (_CONFIG_MAP, "configMap", "name"),
    (_SECRET, "secret", "secretName"),
    (_SECRET, "secret", "name"),
    (_SECRET, "csi.nodePublishSecretRef", "name"),
    (_SECRET, "azureFile", "secretName"),
)
#: Where a container's environment names an object.
_ENVIRONMENT: Final = (
    (_CONFIG_MAP, "configMapRef"),
    (_SECRET, "secretRef"),
    (_CONFIG_MAP, "configMapKeyRef"),
    (_SECRET, "secretKeyRef"),
)
#: Every namespace has the one, each training namespace the other.
_COMMON: Final = frozenset({(_ACCOUNT, "default"), (_CONFIG_MAP, CHECKPOINTS)})


def not_made_here(job: DeclaredJob, resources: Sequence[StackResource]) -> tuple[tuple[str, str], ...]:
    """Return the kinds and names of the objects that a job's pods need and the program does not make in their namespace."""
    needed = dict.fromkeys(each for template in job.all_templates for each in _needed(template.template))
    return tuple(each for each in needed if each not in _COMMON and not _is_made(each, job, resources))


def _needed(template: Value) -> Iterator[tuple[str, str]]:
    spec = at(template, "spec")
    account = text_at(spec, "serviceAccountName") or text_at(spec, "serviceAccount")
    if isinstance(account, str) and account:
        yield _ACCOUNT, account
    for each in known_items(spec, "imagePullSecrets"):
        yield from _named(_SECRET, each, "name")
    for volume in known_items(spec, "volumes"):
        for source in (volume, *known_items(volume, "projected", "sources")):
            for kind, field, key in _VOLUMES:
                yield from _named(kind, at(source, *field.split(".")), key)
    for kind in ("initContainers", "containers"):
        for container in known_items(spec, kind):
            sources = (
                *known_items(container, "envFrom"),
                *(at(each, "valueFrom") for each in known_items(container, "env")),
            )
            for source in sources:
                for of, field in _ENVIRONMENT:
                    yield from _named(of, at(source, field), "name")


def _named(kind: str, source: Value, key: str) -> Iterator[tuple[str, str]]:
    name = text_at(source, key)
    if isinstance(name, str) and name and at(source, "optional") is not True:
        yield kind, name


def _is_made(needed: tuple[str, str], job: DeclaredJob, resources: Sequence[StackResource]) -> bool:
    kind, name = needed
    return any(
        (text_at(each.props, "metadata", "namespace") or "default") in (job.namespace, UNKNOWN)
        and is_same_cluster(each, job.resource, resources) is not False
        for each in (
            *named(resources, f"kubernetes:core/v1:{kind}", name),
            *named(resources, f"kubernetes:core/v1:{kind}", UNKNOWN),
        )
    )
