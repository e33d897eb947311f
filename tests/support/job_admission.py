"""A real control plane where jobs are admitted as in a training namespace, with no operator behind them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING

from holdfast.components.admission.job_admission import capacity_selections, job_manifests
from holdfast.scheduling.labels import FOLLOWS
from holdfast.simulator.kubernetes_client.errors import KubeError
from tests.support.admission_cluster import (
    running_rules,
    wait_until_in_force,
)
from tests.support.admission_objects import policy_and_binding
from tests.support.control_plane import CHECKOUT
from tests.support.definitions import define, define_fallback_policies, read_definition
from tests.support.job_objects import jobset, ladder, pod_template, rayjob, replicated_job, worker_group
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Sequence
    from pathlib import Path

    from holdfast.components.admission.rules import AdmissionRule, NodeSelection
    from holdfast.scheduling.json import Json
    from holdfast.simulator.kubernetes_client.client import KubeClient

#: As a ladder that is applied by hand, without the facts of its pools.
TIERS: Sequence[Json] = (
    {"pool": "a100-spot", "maxFailures": 5},
    {"pool": "cpu-spot", "maxFailures": 3},
    {"pool": "a100"},
)

_DEFINITIONS = (
    "jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
    "kuberay-crds/files/ray.io_rayjobs.yaml",
)


@contextmanager
def running_job_admission(
    folder: Path,
    rules: Sequence[AdmissionRule],
    pods_in_force: Callable[[KubeClient], bool],
    *,
    beside: Iterable[Json] = (),
    selections: tuple[NodeSelection, ...] = (),
) -> Generator[KubeClient]:
    """A cluster where pods and jobs are admitted under these rules; its one training namespace has a ladder.

    `selections` are further ways to ask for spot; what is `beside` is applied as well.
    """
    manifests = [*job_objects(rules, selections), *beside]
    with running_rules(folder, rules, pods_in_force, manifests, prepare=define_kinds) as client:
        client.apply(ladder(*TIERS), field_manager="tests")
        wait_until_in_force(client, jobs_are_mended)
        yield client


def job_objects(rules: Iterable[AdmissionRule], selections: tuple[NodeSelection, ...] = ()) -> list[Json]:
    """The policies for jobs and their bindings, on a cluster whose pods are under these rules."""
    return [
        manifest
        for each in job_manifests((*capacity_selections(rules), *selections))
        for manifest in policy_and_binding(each.name, each.policy, each.binding)
    ]


def admitted_job(client: KubeClient, job: Json) -> Json:
    """The job as the API server would store it.

    For a while after a kind was defined the API server publishes its schema anew, and whenever it does it does not know
    how to change objects of it (503): then it is asked again.
    """
    deadline = time.monotonic() + 30
    while True:
        try:
            return client.apply(job, field_manager="tests", dry_run=True)
        except KubeError as error:
            if error.status != HTTPStatus.SERVICE_UNAVAILABLE or time.monotonic() > deadline:
                raise
        time.sleep(0.2)


def stored_job(client: KubeClient, job: Json) -> Json:
    """The job that is stored under this one's name."""
    metadata = obj(job["metadata"])
    found = client.get(
        str(job["apiVersion"]), str(job["kind"]), str(metadata["name"]), str(metadata["namespace"])
    )
    assert found is not None, f"{metadata['name']} is stored"
    return found


def as_manifest(job: Json) -> Json:
    """The job as somebody would apply it elsewhere."""
    kept = ("name", "namespace", "labels", "annotations")
    metadata = obj(job["metadata"])
    return {**job, "metadata": {key: metadata[key] for key in kept if key in metadata}}


def define_kinds(client: KubeClient) -> None:
    """Define FallbackPolicy, JobSet and RayJob and wait until the API server serves them."""
    define_fallback_policies(client)
    for each in _DEFINITIONS:
        define(client, read_definition(CHECKOUT / "components" / "charts" / each))


def jobs_are_mended(client: KubeClient) -> bool:
    """Whether jobs of both kinds are admitted as they shall be: kinds, policies and ladder take the API server a moment."""
    template = pod_template()
    probes = (
        jobset(replicated_job(template), labels={FOLLOWS: "true"}),
        rayjob(worker_group(template), labels={FOLLOWS: "true"}),
    )
    try:
        return all("annotations" in obj(admitted_job(client, each)["metadata"]) for each in probes)
    except KubeError:
        return False
