"""Rehearses a Pulumi program of another project: preview, up, up again, refresh, destroy."""

import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.controller.kube.objects import condition_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.rehearsal.engine import CommandOutcome
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.lifecycle.checks import first_few, left_in_cluster, names, protected
from pulumi_holdfast.rehearsal.lifecycle.run import StepReport, create, destroy, read_back
from pulumi_holdfast.rehearsal.objects import identity
from pulumi_holdfast.rehearsal.stacks import Stack

_FIELD_MANAGER: Final = "existing"
_DEFINITION: Final = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# Objects of the other kinds need these.
_FIRST: Final = ("CustomResourceDefinition", "Namespace", "Node")
# kwok simulates the kubelet of nodes with this annotation.
_SIMULATED: Final = {"kwok.x-k8s.io/node": "fake"}
_SERVED_SECONDS: Final = 60.0
_LOOK_SECONDS: Final = 1.0
#: The address of each load balancer: one of those that documents may use.
_ADDRESS: Final = "203.0.113.10"


def read_existing(paths: Iterable[Path]) -> list[Json]:
    """Return the objects in YAML files, and in those of folders, in the order in which they can be created.

    Raises RehearsalError for a file that is missing or holds something else.
    """
    found = [each for path in paths for file in _files(path) for each in _objects(file)]
    return sorted(
        found, key=lambda each: _FIRST.index(str(each["kind"])) if each["kind"] in _FIRST else len(_FIRST)
    )


def _files(path: Path) -> list[Path]:
    if path.is_dir():
        return sorted([*path.rglob("*.yaml"), *path.rglob("*.yml")])
    if not path.is_file():
        raise RehearsalError(
            f"--existing {path}: the file does not exist; name a YAML file or a folder of them"
        )
    return [path]


def _objects(file: Path) -> list[Json]:
    try:
        documents = list(
            cast("Iterable[JsonValue]", yaml.load_all(file.read_text("utf-8"), yaml.CSafeLoader))
        )
    except yaml.YAMLError as fault:
        raise RehearsalError(f"--existing {file}: not YAML; fix the file: {fault}") from fault
    found = [each for document in documents if document is not None for each in _items(mapping(document))]
    for each in found:
        if not (each.get("apiVersion") and each.get("kind") and mapping(each.get("metadata")).get("name")):
            raise RehearsalError(
                f"--existing {file}: an object has no apiVersion, kind or metadata.name; write manifests as for kubectl"
            )
    return found


def _items(document: Json) -> list[Json]:
    return [mapping(each) for each in sequence(document["items"])] if "items" in document else [document]


@dataclass(kw_only=True)
class ProgramRun:
    """The lifecycle of a program on `stack`, whose control plane is up.

    `existing` are the objects of the cluster before the program. `show_plan` receives the outcome of the preview.
    `remarks` lists what the simulation cannot show.
    """

    stack: Stack
    existing: Sequence[Json]
    report: StepReport
    show_plan: Callable[[CommandOutcome], None]
    remarks: list[str] = field(default_factory=list[str])

    def run(self) -> None:
        """Run every step.

        Raises RehearsalError if a second `up` or a refresh changes something, or a destroy leaves something behind.
        """
        with closing(KubeClient.from_kubeconfig(self.stack.kubeconfig)) as client:
            if self.existing:
                with self.report.step("the existing cluster") as results:
                    apply_existing(client, self.existing)
                    results.append(f"{len(self.existing)} objects")
            before = frozenset(left_in_cluster(client))
            with addresses(self.stack.kubeconfig):
                create(self.stack, self.report, self.show_plan)
            self.remarks += self.stack.simulators(Faults()).clouds.remarks()
            read_back(self.stack, self.report)
            kept = protected(self.stack.checkpoint())
            if not kept:
                destroy(self.stack, self.report, client, "destroy", before)
                return
            # Its owner lifts the protection in the program, which a rehearsal does not change.
            with self.report.step("destroy") as results:
                results.append(f"not run: {first_few(names(kept))} is protected")


@contextmanager
def addresses(kubeconfig: Path) -> Generator[None]:
    """Give each load balancer and Ingress an address, as a cloud's controller does; without one the plugin waits for ten minutes."""
    stop = threading.Event()

    def give() -> None:
        with closing(KubeClient.from_kubeconfig(kubeconfig)) as client:
            while not stop.wait(_LOOK_SECONDS):
                with suppress(*FAILURES):
                    _give_addresses(client)

    thread = threading.Thread(target=give, daemon=True, name="load balancers")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def _give_addresses(client: KubeClient) -> None:
    for kind in (("v1", "Service"), ("networking.k8s.io/v1", "Ingress")):
        for each in client.list(*kind):
            metadata, status = mapping(each.get("metadata")), mapping(each.get("status"))
            is_plain = kind[1] == "Service" and mapping(each.get("spec")).get("type") != "LoadBalancer"
            if is_plain or mapping(status.get("loadBalancer")).get("ingress"):
                continue
            patch: Json = {"status": {"loadBalancer": {"ingress": [{"ip": _ADDRESS}]}}}
            client.patch_status(*kind, str(metadata["name"]), patch, str(metadata["namespace"]))


def apply_existing(client: KubeClient, objects: Iterable[Json]) -> None:
    """Create the objects of a cluster that exists; nodes become ready, and new kinds are served.

    Raises RehearsalError with the object that the API server refuses.
    """
    for each in objects:
        try:
            client.apply(
                _ready_node(each) if each["kind"] == "Node" else each,
                field_manager=_FIELD_MANAGER,
                force=True,
            )
            if each["kind"] == _DEFINITION[1]:
                _wait_until_served(client, each)
        except ApiError as error:
            message = f"--existing: the API server refuses {identity(each)}; fix its manifest: {error}"
            raise RehearsalError(message) from error


def _ready_node(node: Json) -> Json:
    metadata = mapping(node.get("metadata"))
    return {
        **node,
        "metadata": {**metadata, "annotations": {**mapping(metadata.get("annotations")), **_SIMULATED}},
    }


def _wait_until_served(client: KubeClient, definition: Json) -> None:
    def is_served(found: "Json | None") -> bool:
        return condition_of(found or {}, "Established").get("status") == "True"

    name = str(mapping(definition["metadata"])["name"])
    client.wait_for(
        *_DEFINITION, name, timeout_seconds=_SERVED_SECONDS, condition=is_served, what=f"{name} is served"
    )
