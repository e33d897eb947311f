"""Free loopback ports."""

import socket
from contextlib import ExitStack

from rehearsal.controlplane.configuration import Ports


def free_ports() -> Ports:
    """Choose a port for each listener that nobody uses at this moment."""
    with ExitStack() as stack:
        # All are held open until the last one is chosen: they differ from each other.
        sockets = [stack.enter_context(socket.socket()) for _ in range(Ports.count())]
        for each in sockets:
            each.bind(("127.0.0.1", 0))
        return Ports.of([int(each.getsockname()[1]) for each in sockets])
