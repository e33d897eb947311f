"""The operator host as a process of its own: `python -m rehearsal.hosting STACK PROJECT_ROOT`."""

import asyncio
import logging
import sys
from pathlib import Path

from rehearsal.errors import RehearsalError
from rehearsal.hosting.host import Host
from rehearsal.hosting.layout import HostLayout
from rehearsal.paths import Workspace
from rehearsal.tools.locate import find_tool


def main() -> int:
    """Run the host until SIGTERM; returns the exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    stack, root = sys.argv[1:]
    workspace = Workspace(project_root=Path(root))
    try:
        host = Host(HostLayout.of(stack, workspace), lambda tool: find_tool(tool, workspace))
        asyncio.run(host.run())
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
