"""A copy of a training namespace, for a scenario, a fault run or a benchmark."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.scenarios.platform import FIELD_MANAGER
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS

_RBAC: Final = "rbac.authorization.k8s.io/v1"


@contextmanager
def cloned_namespace(
    client: KubeClient, name: str, *objects: Json, model: str | None = None
) -> Generator[None]:
    """A namespace with `objects` in it for the length of the block; a leftover of that name is removed first.

    It has the labels and role bindings of the training namespace `model`, by default the first one. Raises
    RehearsalError if there is none.
    """
    remove_namespace(client, name)
    try:
        clone_namespace(client, name, *objects, model=model)
        yield
    finally:
        remove_namespace(client, name)


def clone_namespace(client: KubeClient, name: str, *objects: Json, model: str | None = None) -> None:
    """Create such a namespace with `objects` in it. Raises RehearsalError if there is no training namespace."""
    for each in (*_like(client, model, name), *objects):
        client.apply(each, field_manager=FIELD_MANAGER, force=True)


def remove_namespace(client: KubeClient, name: str) -> None:
    """Delete a namespace and wait until it is gone. Does nothing if there is none."""
    if client.delete("v1", "Namespace", name):
        client.wait_until_gone("v1", "Namespace", name, timeout_seconds=2 * WAIT_SECONDS)


def namespace_clone(model: Json, bindings: Sequence[Json], name: str) -> list[Json]:
    """Return a namespace with the labels of `model`, and the role bindings for it. Pure."""
    labels = mapping(mapping(model.get("metadata")).get("labels"))
    kept = {key: value for key, value in labels.items() if not key.startswith("kubernetes.io/")}
    namespace: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": kept}}
    return [namespace, *(_bound(each, name) for each in bindings)]


def _like(client: KubeClient, model: str | None, name: str) -> list[Json]:
    found = client.list("v1", "Namespace", label_selector=f"{TRAINING}={TRAINING_VALUE}")
    models = [each for each in found if name_of(each) == model or (model is None and name_of(each) != name)]
    if not models:
        raise RehearsalError(
            "the platform has no training namespace to copy: add one under `namespaces` in its stack file, "
            "and bring it up again"
        )
    first = min(models, key=name_of)
    return namespace_clone(first, client.list(_RBAC, "RoleBinding", namespace=name_of(first)), name)


def _bound(binding: Json, namespace: str) -> Json:
    return {
        "apiVersion": _RBAC,
        "kind": "RoleBinding",
        "metadata": {"name": name_of(binding), "namespace": namespace},
        "roleRef": binding["roleRef"],
        "subjects": binding.get("subjects"),
    }
