"""A test program, rehearsed on simulated clouds in a folder of its own."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pulumi

from pulumi_holdfast.rehearsal.engine import Audience, CommandOutcome, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.process import EngineProcess
from tests.soak.crash.targets import CloudTarget
from tests.support.clusters.control_plane import scratch_workspace

_PACK = """
from pulumi_policy import EnforcementLevel, PolicyPack, StackValidationPolicy

def judge(args, report):
    if any(one.resource_type == "aws:ec2/vpc:Vpc" for one in args.resources):
        report("a VPC is one too many")

PolicyPack(
    name="strict",
    policies=[
        StackValidationPolicy(
            name="no-vpc", description="No VPC.", enforcement_level=EnforcementLevel.LEVEL, validate=judge
        )
    ],
)
"""


def a_subject(program: Callable[[], None], **overrides: Any) -> Subject:
    fields: dict[str, Any] = {
        "program": program,
        "project": {"name": "holdfast", "runtime": "python"},
        "settings": {"config": {"aws:region": "us-east-1"}},
        "packages": ("aws",),
    }
    return Subject(**{**fields, **overrides})


def a_target(root: Path, program: Callable[[], None], **overrides: Any) -> CloudTarget:
    return CloudTarget(
        stack="dev", workspace=scratch_workspace(root), subject=a_subject(program, **overrides)
    )


def run(
    stage: CloudTarget,
    command: Callable[[Rehearsal], CommandOutcome],
    *,
    faults: Faults | None = None,
    process: EngineProcess | None = None,
    show: Callable[[str], None] = lambda _: None,
) -> CommandOutcome:
    """Run one command in a session of its own."""
    with stage.session(faults or Faults(), process or EngineProcess(), Audience(show=show)) as rehearsal:
        return command(rehearsal)


def a_pack(folder: Path, level: str) -> Path:
    """Write a policy pack whose one rule, of a level such as MANDATORY, refuses every VPC."""
    folder.mkdir(parents=True)
    (folder / "PulumiPolicy.yaml").write_text("runtime: python\nversion: 1.0.0\n")
    (folder / "__main__.py").write_text(_PACK.replace("LEVEL", level))
    return folder


def network() -> None:
    """A VPC with two subnets, a bucket with a random name, a queue that refers to it, a role with a fixed name."""
    import pulumi_aws as aws

    bucket = aws.s3.Bucket("checkpoints", tags={"team": "vision"})
    aws.sqs.Queue("interruptions", tags={"bucket": bucket.id})
    vpc = aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
    for zone in range(2):
        aws.ec2.Subnet(f"zone-{zone}", vpc_id=vpc.id, cidr_block=f"10.0.{zone}.0/24")
    aws.iam.Role("trainer", name="trainer", assume_role_policy="{}")
    pulumi.export("vpc", vpc.id)
