"""Two who keep the same nodes never undo each other's work."""

import threading
from pathlib import Path

from holdfast.simulator.stacks.cluster_nodes import ClusterNodes


def test_who_wants_the_nodes_of_a_cloud_waits_for_whoever_has_them(tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    got = threading.Event()

    def take() -> None:
        with ClusterNodes(kubeconfig, "gcp").held():
            got.set()

    with ClusterNodes(kubeconfig, "gcp").held():
        waiting = threading.Thread(target=take)
        waiting.start()
        with ClusterNodes(kubeconfig, "aws").held():
            assert not got.wait(0.2), "both have them at once"
    waiting.join(timeout=10)
    assert got.is_set(), "the second never gets them"
