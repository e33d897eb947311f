"""The same training on several machines with NumPy: each worker has its own share of every step's points.

The workers of a JobSet find the first one by its name: MASTER_ADDR is `<jobset>-worker-0-0.<jobset>`. It adds up the changes
of all workers in the order of their ranks, so that the weights do not depend on who was faster. A spot notice reaches the
workers of one machine only. So each step also exchanges whether any worker has received SIGTERM: all stop after the same step.
"""

import os
import socket
import sys
import time

import numpy as np
from checkpoints import checkpoints_of
from train import SECONDS_PER_STEP, STOPPED, Notice, train

# An indexed Job numbers its pods.
RANK = int(os.environ.get("JOB_COMPLETION_INDEX", "0"))
WORKERS = int(os.environ.get("WORKERS", "2"))
MASTER = (os.environ.get("MASTER_ADDR", "127.0.0.1"), int(os.environ.get("MASTER_PORT", "29400")))
POINTS = 32
# A peer may still wait for its machine.
SECONDS_FOR_PEERS = 300
SECONDS_BETWEEN_ATTEMPTS = 0.1


class PeerLostError(Exception):
    """A worker has ended: no step can be taken without it."""


class Group:
    """All workers. The first one accepts the others, adds up what each has, and sends the sum to all."""

    def __init__(self, notice):
        self._notice = notice
        self._peers = self._accept() if RANK == 0 else [self._connect()]

    def _accept(self):
        peers = {}
        with socket.create_server(MASTER, backlog=WORKERS) as server:
            server.settimeout(SECONDS_BETWEEN_ATTEMPTS)
            for _ in self._attempts():
                if len(peers) == WORKERS - 1:
                    break
                try:
                    peer, _ = server.accept()
                except TimeoutError:
                    continue
                peer.settimeout(None)
                peers[int.from_bytes(received(peer, 4))] = peer
        return [peers[rank] for rank in sorted(peers)]

    def _connect(self):
        for _ in self._attempts():
            try:
                peer = socket.create_connection(MASTER, timeout=1)
            except OSError:
                time.sleep(SECONDS_BETWEEN_ATTEMPTS)
                continue
            peer.settimeout(None)
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            peer.sendall(RANK.to_bytes(4))
            return peer
        return None

    def _attempts(self):
        """Attempts to meet the peers. SIGTERM ends the program: without peers, there is nothing to keep."""
        until = time.monotonic() + SECONDS_FOR_PEERS
        while time.monotonic() < until:
            if self._notice.is_heard:
                sys.exit(STOPPED)
            yield
        sys.exit(f"not all of {WORKERS} workers were at {MASTER[0]}:{MASTER[1]} within {SECONDS_FOR_PEERS} s")

    def sum(self, values):
        """The sum of all workers' arrays."""
        try:
            if RANK > 0:
                self._peers[0].sendall(values.tobytes())
                return np.frombuffer(received(self._peers[0], values.nbytes))
            total = values.copy()
            for peer in self._peers:
                total += np.frombuffer(received(peer, values.nbytes))
            for peer in self._peers:
                peer.sendall(total.tobytes())
        except OSError as error:
            raise PeerLostError(str(error)) from error
        return total


def received(peer, count):
    """So many bytes from a peer. Raises PeerLostError if it has ended."""
    data = b""
    while len(data) < count:
        part = peer.recv(count - len(data))
        if not part:
            raise PeerLostError("a worker has closed its connection")
        data += part
    return data


def shared_step(group, notice):
    """Return the step that all workers take together."""

    def step(state):
        number = state["step"] + 1
        offset, slope = state["weights"]
        points = np.random.default_rng([number, RANK])
        x = points.uniform(-1, 1, POINTS)
        error = offset + slope * x - (1 + 2 * x + points.normal(0, 0.1, POINTS))
        time.sleep(SECONDS_PER_STEP)
        own = np.array([error.mean(), (error * x).mean(), float(notice.is_heard)])
        *gradient, stops = group.sum(own).tolist()
        notice.is_heard = stops > 0
        print(f"step {number}", flush=True)
        weights = [old - 0.05 * each / WORKERS for old, each in zip(state["weights"], gradient, strict=True)]
        return {"step": number, "weights": weights}

    return step


def main():
    """Train as configured by the environment."""
    notice = Notice()
    notice.listen()
    if "CHECKPOINT_URI" not in os.environ:
        sys.exit("CHECKPOINT_URI: not set; take it from the ConfigMap checkpoints, with envFrom")
    checkpoints = checkpoints_of(os.environ["CHECKPOINT_URI"], os.environ.get("RUN", "first"))
    try:
        train(checkpoints, saves=RANK == 0, notice=notice, step=shared_step(Group(notice), notice))
    except PeerLostError as error:
        # JobSet restarts all workers together; they continue from the latest checkpoint.
        sys.exit(f"stops: {error}")


if __name__ == "__main__":
    main()
