"""Runs small programs on the real engine, every cloud played by a stand-in, each test in a place of its own."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pulumi

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.state import CloudObject, CloudState
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Outcome, Rehearsal, Subject
from holdfast.simulator.pulumi.clouds import StandInClouds
from holdfast.simulator.pulumi.faults import Faults
from holdfast.simulator.pulumi.folder import EngineFolder
from tests.support.command_line import Program, StackCommands

_PROJECT = "clouds"
_STACK = "test"


def network(*, tags: dict[str, str] | None = None, cidr: str = "10.0.0.0/16") -> None:
    """Register an AWS network with one subnet, `zone-a`."""
    from pulumi_aws import ec2

    vpc = ec2.Vpc("network", cidr_block=cidr, tags=tags)
    subnet = ec2.Subnet("zone-a", vpc_id=vpc.id, cidr_block=cidr.replace("/16", "/24"))
    pulumi.export("vpc", vpc.id)
    pulumi.export("subnet", subnet.arn)


def bucket(name: str, *, import_id: str | None = None) -> None:
    """Register an AWS bucket, `checkpoints`."""
    from pulumi_aws import s3

    s3.Bucket("checkpoints", bucket=name, opts=pulumi.ResourceOptions(import_=import_id))


@dataclass(frozen=True, kw_only=True)
class CloudProgram(StackCommands):
    """A stack on stand-in clouds."""

    root: Path
    packages: tuple[str, ...] = ("aws",)
    config: Json = field(default_factory=dict[str, JsonValue])

    def cloud(self, package: str = "aws") -> CloudState:
        """Return a cloud, to look at or to change as its console would."""
        return CloudState(self._folder.stand_ins / f"{package}.json")

    def objects(self, type_token: str) -> list[CloudObject]:
        """Return the objects of a type that exist."""
        return self.cloud(type_token.split(":")[0]).read().of_type(type_token)

    @property
    def _folder(self) -> EngineFolder:
        return EngineFolder.of(_STACK, self._workspace)

    @property
    def _workspace(self) -> Workspace:
        """A checkout that shares nothing with this one but the tools and their pins."""
        for shared in (".tools", "tools"):
            link = self.root / shared
            if not link.is_symlink():
                link.symlink_to(Path(__file__).parents[2] / shared)
        return Workspace(project_root=self.root)

    def _run(self, program: Program, faults: Faults, command: Callable[[Rehearsal], Outcome]) -> Outcome:
        stand_ins = StandInClouds(
            folder=self._folder.stand_ins,
            checkpoint=self._folder.checkpoint(_PROJECT, _STACK),
            faults=faults,
        )
        subject = Subject(
            program=program,
            project={"name": _PROJECT, "runtime": "python"},
            settings={"config": self.config},
            packages=self.packages,
        )
        with Rehearsal.open(_STACK, self._workspace, subject=subject, stand_ins=stand_ins) as rehearsal:
            return command(rehearsal)
