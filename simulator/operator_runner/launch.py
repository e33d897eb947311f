"""Becomes another program that dies with its parent: `python launch.py PARENT_PID PROGRAM ARGUMENTS…`.

Started by its path and importing next to nothing, because it stands before each start of a controller.
"""

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Ask the kernel to kill this process when its parent ends, however that ends; then become PROGRAM."""
    parent = int(arguments[0])
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent may have gone before the kernel was asked.
    if os.getppid() != parent:
        sys.exit("the host ended while this process was started")
    os.execv(arguments[1], arguments[1:])  # noqa: S606  (no shell is the point)


if __name__ == "__main__":
    main(sys.argv[1:])
