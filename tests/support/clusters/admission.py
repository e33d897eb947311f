"""A real control plane with admission in force, and pods put through it without being stored."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from holdfast.scheduling import taints
from holdfast.scheduling.labels import CAPACITY_TYPE, SPOT, TRAINING, TRAINING_VALUE
from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.support.admission_model import tolerations_of
from tests.support.admission_objects import (
    GIVEN_SPOT,
    REWRITE,
    TOUCHED,
    admission_objects,
)
from tests.support.control_plane import running_control_plane
from tests.support.json_objects import obj
from tests.support.training_pods import container, pod

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping
    from pathlib import Path

    from holdfast.components.admission.rules import AdmissionRule
    from holdfast.scheduling.json import Json

TRAINING_NAMESPACE = "vision"
OTHER_NAMESPACE = "web"
SPOT_TOLERATION = taints.SPOT.as_toleration()
GPU_TOLERATION = taints.GPU.as_toleration()
SELECTS_SPOT: Json = {"nodeSelector": {CAPACITY_TYPE: SPOT}}


@contextmanager
def running_rules(
    folder: Path,
    rules: Iterable[AdmissionRule],
    in_force: Callable[[KubeClient], bool],
    beside: Iterable[Json] = (),
    *,
    prepare: Callable[[KubeClient], None] = lambda _: None,
) -> Generator[KubeClient]:
    """A cluster where these rules are in force, with one training namespace and one other namespace.

    `prepare` runs before any policy is created. It defines the kinds that policies name: an API server that reads a
    policy first caches that the kind is unknown, for 20 seconds and more.
    """
    with running_control_plane(folder) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig("local"))
        try:
            make_namespace(client, TRAINING_NAMESPACE, {TRAINING: TRAINING_VALUE})
            make_namespace(client, OTHER_NAMESPACE, {})
            prepare(client)
            for manifest in [*admission_objects(rules), *beside]:
                client.apply(manifest, field_manager="tests")
            wait_until_in_force(client, in_force)
            yield client
        finally:
            client.close()


def make_namespace(client: KubeClient, name: str, labels: Mapping[str, str]) -> None:
    """Make a namespace and wait for the service account without which the API refuses its pods."""
    manifest: Json = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    client.apply(manifest, field_manager="tests")
    client.wait_for(
        "v1",
        "ServiceAccount",
        "default",
        namespace=name,
        timeout_seconds=30,
        condition=lambda found: found is not None,
        what=f"the default service account of {name}",
    )


def wait_until_in_force(client: KubeClient, in_force: Callable[[KubeClient], bool]) -> None:
    """Wait until the API server has taken up every policy, which it does a moment after it has accepted one."""
    deadline = time.monotonic() + 30
    while not in_force(client):
        assert time.monotonic() < deadline, "the API server has not taken up the policies within 30 s"
        time.sleep(0.1)


def in_force(client: KubeClient) -> bool:
    """Whether pods that meet every policy come out changed by each."""
    asking = pod(
        namespace=TRAINING_NAMESPACE,
        annotations={REWRITE: TOUCHED},
        containers=[container("1")],
        spec=SELECTS_SPOT,
    )
    touched = admitted(client, asking)
    given_spot = admitted(client, pod(namespace=OTHER_NAMESPACE, annotations={REWRITE: GIVEN_SPOT}))
    return (
        all(each in tolerations_of(touched) for each in (SPOT_TOLERATION, GPU_TOLERATION))
        and "labels" in obj(touched["metadata"])
        and "nodeSelector" in obj(given_spot["spec"])
    )


def admitted(client: KubeClient, manifest: Json) -> Json:
    """The pod as the API server would store it."""
    return client.apply(manifest, field_manager="tests", dry_run=True)


def admitted_tolerations(client: KubeClient, manifest: Json) -> list[Json]:
    """The tolerations that the pod would be stored with."""
    return tolerations_of(admitted(client, manifest))
