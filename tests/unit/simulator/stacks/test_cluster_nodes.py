"""The nodes of a cloud are locked against concurrent changes."""

import threading
from pathlib import Path

from holdfast.simulator.stacks.cluster_nodes import ClusterNodes


def test_second_process_waits_for_the_nodes_of_a_cloud(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    locked = threading.Event()

    def lock() -> None:
        with ClusterNodes(kubeconfig, "gcp").held():
            locked.set()

    with ClusterNodes(kubeconfig, "gcp").held():
        waiting = threading.Thread(target=lock)
        waiting.start()
        with ClusterNodes(kubeconfig, "aws").held():
            assert not locked.wait(0.2), "the lock of another cloud does not matter"
    waiting.join(timeout=10)
    assert locked.is_set(), "the second process gets the lock"
