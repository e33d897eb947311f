"""The examples of a cloud on the ladders of one of its stacks, as a real API server with that stack's admission sees them."""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import POOL, TRAINING, TRAINING_VALUE
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.stacks.stack import api_server_profile
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.builders.training_jobs import marked, selectors_of, templates_of
from tests.support.clusters.admission import make_namespace, wait_until_enforced
from tests.support.clusters.control_plane import CHECKOUT, running_control_plane
from tests.support.clusters.job_admission import admitted_job, define_kinds, is_judged
from tests.support.fakes.pulumi_engine import Recorded, Recording
from tests.support.json_objects import obj, objects

#: Of every such stack.
NAMESPACES: Final = ("tabular", "vision")

_ADMISSION: Final = "admissionregistration.k8s.io/v1"
_KINDS: Final = (
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
)


#: Each cloud with the stack of it that has every kind of pool.
STACKS: Final[Mapping[str, Callable[[], Recording]]] = {
    "local": lambda: local_stacks.stack("local"),
    "aws": lambda: aws_stacks.stack("aws-prod"),
    "azure": lambda: azure_stacks.stack("azure-prod"),
    "gcp": lambda: gcp_stacks.stack("gcp-prod"),
}


#: Each cloud with the stack of it that has every kind of volume, which its examples mount.
DATA_STACKS: Final[Mapping[str, Callable[[], Recording]]] = {
    "aws": lambda: aws_stacks.stack("aws-data"),
    "azure": lambda: azure_stacks.stack("azure-data"),
    "gcp": lambda: gcp_stacks.stack("gcp-data"),
}


@dataclass(frozen=True, kw_only=True)
class Walk:
    """An API server with the admission and the ladders of a stack of `cloud`."""

    cloud: str
    client: KubeClient
    ladders: Mapping[str, Sequence[Json]]

    def jobs(self) -> Iterator[tuple[str, Json]]:
        """Each example that is a job, as it is admitted to the namespace that it is for; with that namespace."""
        for path in sorted((CHECKOUT / "examples" / self.cloud).glob("*.yaml")):
            written = cast("Json", yaml.safe_load(path.read_text()))
            if written["kind"] in {"JobSet", "RayJob"}:
                namespace = "vision" if "gpu" in path.read_text() else "tabular"
                metadata = {**obj(written["metadata"]), "namespace": namespace}
                yield namespace, admitted_job(self.client, {**written, "metadata": metadata})

    def pod_of(self, template: Json, namespace: str, pool: str | None) -> Json:
        """A pod of a template as it is admitted, on a tier if one is given."""
        spec = {key: value for key, value in obj(template["spec"]).items() if key != "serviceAccountName"}
        if pool is not None:
            spec["nodeSelector"] = {**obj(spec.get("nodeSelector")), POOL: pool}
        metadata = {**obj(template.get("metadata")), "name": "one", "namespace": namespace}
        pod: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
        return self.client.apply(pod, field_manager="tests", dry_run=True)


@contextmanager
def running_for_examples(folder: Path, cloud: str) -> Generator[KubeClient]:
    """A control plane like the cloud's where FallbackPolicy and both kinds of job are known."""
    arguments = api_server_profile(cloud).arguments
    with running_control_plane(folder, cloud, arguments=arguments) as workspace:
        client = KubeClient.from_kubeconfig(workspace.kubeconfig(cloud))
        define_kinds(client)
        for namespace in NAMESPACES:
            make_namespace(client, namespace, {TRAINING: TRAINING_VALUE})
        yield client
        client.close()


@contextmanager
def walking(cloud: str, client: KubeClient) -> Generator[Walk]:
    """The admission and ladders of the cloud's stack on a control plane, for the length of the block."""
    stack = STACKS[cloud]()
    ladders = {
        str(obj(each.inputs["metadata"])["namespace"]): objects(obj(each.inputs["spec"])["tiers"])
        for each in stack.of(":FallbackPolicy")
    }
    for each in DATA_STACKS[cloud]().of("core/v1:Namespace") if cloud in DATA_STACKS else ():
        metadata = obj(each.inputs["metadata"])
        if metadata["name"] in NAMESPACES:
            named: Json = {key: metadata[key] for key in ("name", "annotations") if key in metadata}
            client.apply(
                {"apiVersion": "v1", "kind": "Namespace", "metadata": named}, field_manager="tests-data"
            )
    manifests = list(_manifests(stack))
    for manifest in manifests:
        client.apply(manifest, field_manager="tests")
    walk = Walk(cloud=cloud, client=client, ladders=ladders)
    wait_until_enforced(client, lambda _: is_in_force(walk))
    yield walk
    for manifest in manifests:
        metadata = obj(manifest["metadata"])
        client.delete(
            str(manifest["apiVersion"]),
            str(manifest["kind"]),
            str(metadata["name"]),
            namespace=str(metadata.get("namespace", "default")),
            # In the foreground it would go later, when the next cloud's is there under its name.
            propagation="Background",
        )
    # What is still in force would pass for the next cloud's, whose policies have the same names.
    wait_until_enforced(client, lambda _: is_out_of_force(walk))


def is_in_force(walk: Walk) -> bool:
    """Whether what follows is marked, its pods tolerate the first tier, and what cannot follow is refused.

    Policies are taken up one by one.
    """
    try:
        return all(_is_at_home(walk, namespace, job) for namespace, job in walk.jobs()) and all(
            is_judged(walk.client, namespace) for namespace in NAMESPACES
        )
    except ApiError:  # a kind, policy or ladder that is not known yet
        return False


def is_out_of_force(walk: Walk) -> bool:
    """Whether the examples are admitted as they are written, and so is what no machine has room for."""
    try:
        moved = any(selectors_of(job).get("worker", {}).keys() & {POOL} for _, job in walk.jobs())
    except ApiError:  # a policy that outlives its ladder for a moment
        return False
    return not moved and not any(is_judged(walk.client, namespace) for namespace in NAMESPACES)


def _is_at_home(walk: Walk, namespace: str, job: Json) -> bool:
    first, templates = walk.ladders[namespace][0], templates_of(job)
    pods = [walk.pod_of(templates[name], namespace, None) for name in marked(job)]
    return bool(pods) and not any(untolerated(pod, first) for pod in pods)


def untolerated(pod: Json, tier: Json) -> list[Json]:
    """The taints of a tier's nodes that keep a pod away."""
    tolerations = objects(obj(pod["spec"]).get("tolerations"))
    return [
        taint
        for taint in objects(obj(tier["facts"])["taints"])
        if not any(_tolerates(each, taint) for each in tolerations)
    ]


def unmatched(pod: Json, tier: Json) -> Json:
    """What a pod selects by that a tier's nodes do not have."""
    labels = obj(obj(tier["facts"])["labels"])
    selector = obj(obj(pod["spec"]).get("nodeSelector"))
    return {key: value for key, value in selector.items() if labels.get(key) != value}


def _tolerates(toleration: Json, taint: Json) -> bool:
    exists = toleration.get("operator") == "Exists"
    same_effect = not toleration.get("effect") or toleration["effect"] == taint["effect"]
    same_key = toleration.get("key") == taint["key"] or (exists and not toleration.get("key"))
    return same_effect and same_key and (exists or toleration.get("value", "") == taint.get("value", ""))


def _manifests(stack: Recording) -> Iterator[Json]:
    for kind in _KINDS:
        for each in stack.of(f":{kind}"):
            yield _object(each, _ADMISSION, kind)
    for each in stack.of(":FallbackPolicy"):
        yield _object(each, "holdfast.dev/v1alpha1", "FallbackPolicy")


def _object(resource: Recorded, api_version: str, kind: str) -> Json:
    inputs = resource.inputs
    return {"apiVersion": api_version, "kind": kind, "metadata": inputs["metadata"], "spec": inputs["spec"]}
