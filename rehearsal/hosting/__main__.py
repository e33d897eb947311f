"""The operator host as a process of its own: `python -m rehearsal.hosting STACK PROJECT_ROOT`."""

import asyncio
import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from rehearsal.autoscaling import Autoscaler
from rehearsal.engine.folder import EngineFolder
from rehearsal.errors import RehearsalError
from rehearsal.hosting.ec2 import Ec2Market
from rehearsal.hosting.host import Host
from rehearsal.hosting.layout import HostLayout
from rehearsal.kube.cancellation import Cancellation
from rehearsal.kube.client import KubeClient
from rehearsal.paths import Workspace
from rehearsal.providers.cloud.state import CloudState
from rehearsal.stacks.cluster_nodes import ClusterNodes
from rehearsal.tools.locate import find_tool


def main() -> int:
    """Run the host until SIGTERM; returns the exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    stack, root = sys.argv[1:]
    workspace = Workspace(project_root=Path(root))
    try:
        clouds = EngineFolder.of(stack, workspace).stand_ins
        ec2 = Ec2Market(CloudState(clouds / "aws.json"))
        layout = HostLayout.of(stack, workspace)
        host = Host(layout, lambda tool: find_tool(tool, workspace), ec2.sold_to)
        with _autoscaling(layout.kubeconfig, CloudState(clouds / "gcp.json")):
            asyncio.run(host.run())
    except RehearsalError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


@contextmanager
def _autoscaling(kubeconfig: Path, gcp: CloudState) -> Generator[None]:
    """Have GKE's autoscaler, which is no pod of the cluster, look after its node pools for the length of the block."""
    cancellation = Cancellation()
    client = KubeClient.from_kubeconfig(kubeconfig).under(cancellation)
    autoscaler = Autoscaler(client, gcp, ClusterNodes(kubeconfig, "gcp"))
    threading.Thread(target=autoscaler.run, args=[cancellation], name="autoscaler", daemon=True).start()
    try:
        yield
    finally:
        cancellation.cancel()


if __name__ == "__main__":
    sys.exit(main())
