"""One preview in a process of its own, so that its time and memory are its own."""

import sys
from typing import Final

import grpc
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine import Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.plugin import Plugin
from pulumi_holdfast.rehearsal.engine.values import from_struct, reveal
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.soak.bench.policy_program import program

# ruff: noqa: N802 - names and parameters of the methods are the protocol's


_VERSION = "4.34.2"


class EchoProvider(Plugin):
    """Accepts everything; `created` holds the objects that a run, not a preview, created, by URN."""

    def __init__(self, created: dict[str, Json]) -> None:
        super().__init__(_VERSION)
        self.created = created

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Return the inputs unchanged."""
        return provider_pb2.CheckResponse(inputs=request.news)

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Return the inputs as outputs."""
        if request.preview:
            return provider_pb2.CreateResponse(properties=request.properties)
        made = from_struct(request.properties)
        self.created[request.urn] = {key: reveal(value) for key, value in made.items()}
        return provider_pb2.CreateResponse(id=request.urn, properties=request.properties)


class EchoProviders:
    """Provides an echo provider for every package; `created` holds what they create."""

    def __init__(self) -> None:
        self.created: dict[str, Json] = {}

    def provider(self, package: str) -> ResourceProviderServicer:
        """Return an echo."""
        return EchoProvider(self.created)

    def made(self, operation: PendingOperation) -> str | None:
        """Return None: no run of the benchmark is interrupted."""
        return None


WITHOUT = "without a pack"
EMPTY = "with an empty pack"
WITH = "with the pack"
#: The pack of each subject, in the repository.
PACKS: Final = {WITHOUT: "", EMPTY: "tests/soak/bench/empty_pack", WITH: "policies"}


def main() -> None:
    """Run `python -m tests.soak.bench.policy_preview RESOURCES SUBJECT RUN_AS`."""
    resources, subject_name, run_as = sys.argv[1:]
    pack = PACKS[subject_name]
    workspace = Workspace.find()
    subject = Subject(
        program=lambda: program(int(resources)),
        project={"name": "holdfast"},
        settings={},
        packages=("kubernetes",),
        policy_packs=(workspace.project_root / pack,) if pack else (),
    )
    with Rehearsal.open(run_as, workspace, subject=subject, providers=EchoProviders()) as rehearsal:
        rehearsal.preview()


if __name__ == "__main__":
    main()
