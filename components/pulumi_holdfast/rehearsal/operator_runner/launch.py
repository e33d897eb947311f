"""Executes a program that dies with its parent: `python launch.py PARENT_PID PROGRAM ARGUMENTS…`.

Each start of a controller runs this file, so it imports very little.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Request a kill signal for the exit of the parent, then execute PROGRAM."""
    parent = int(arguments[0])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have exited before the request.
    if os.getppid() != parent:
        sys.exit("the operator runner exited while this process started")
    os.execv(arguments[1], arguments[1:])  # noqa: S606  (no shell is intended)


if __name__ == "__main__":
    main(sys.argv[1:])
