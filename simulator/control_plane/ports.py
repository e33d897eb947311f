"""Free loopback ports."""

import socket
from contextlib import ExitStack


def free_ports(count: int) -> list[int]:
    """Choose `count` different ports that nobody uses at this moment."""
    with ExitStack() as stack:
        # All are held open until the last one is chosen: they differ from each other.
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return [int(each.getsockname()[1]) for each in sockets]
