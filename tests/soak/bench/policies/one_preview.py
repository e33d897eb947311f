"""One preview in a process of its own, so that its time and memory are its own."""

import sys

from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi import Rehearsal, Subject
from tests.soak.bench.policies.echo import EchoStandIns
from tests.soak.bench.policies.program import program

WITH = "with"
WITHOUT = "without"


def main() -> None:
    """Run `python -m tests.soak.bench.policies.one_preview RESOURCES with|without RUN_AS`."""
    resources, pack, run_as = sys.argv[1:]
    workspace = Workspace.find()
    subject = Subject(
        program=lambda: program(int(resources)),
        project={"name": "holdfast"},
        settings={},
        packages=("kubernetes",),
        policy_packs=(workspace.project_root / "policies",) if pack == WITH else (),
    )
    with Rehearsal.open(run_as, workspace, subject=subject, stand_ins=EchoStandIns()) as rehearsal:
        rehearsal.preview()


if __name__ == "__main__":
    main()
