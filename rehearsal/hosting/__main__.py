"""The operator host as a process of its own: `python -m rehearsal.hosting STACK PROJECT_ROOT`."""

import asyncio
import logging
import sys
from pathlib import Path

from rehearsal.engine.folder import EngineFolder
from rehearsal.errors import RehearsalError
from rehearsal.hosting.ec2 import Ec2Market
from rehearsal.hosting.host import Host
from rehearsal.hosting.layout import HostLayout
from rehearsal.paths import Workspace
from rehearsal.providers.cloud.state import CloudState
from rehearsal.tools.locate import find_tool


def main() -> int:
    """Run the host until SIGTERM; returns the exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    stack, root = sys.argv[1:]
    workspace = Workspace(project_root=Path(root))
    try:
        ec2 = Ec2Market(CloudState(EngineFolder.of(stack, workspace).stand_ins / "aws.json"))
        layout = HostLayout.of(stack, workspace)
        host = Host(layout, lambda tool: find_tool(tool, workspace), ec2.sold_to)
        asyncio.run(host.run())
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
