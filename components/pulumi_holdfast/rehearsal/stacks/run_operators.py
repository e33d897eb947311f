"""The background process of the operator runner: `python -m pulumi_holdfast.rehearsal.stacks.run_operators STACK PROJECT_ROOT`.

`OperatorRunner.start` starts it. It runs the kubelet of the operators, the managed Karpenter of AKS, the cluster
autoscalers of GKE and AKS, and the trust of EKS clusters in other issuers.
"""

import asyncio
import logging
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from pulumi_holdfast.rehearsal.clouds.state import CloudState
from pulumi_holdfast.rehearsal.cluster_autoscaler import Autoscaler
from pulumi_holdfast.rehearsal.cluster_autoscaler.node_groups import AZURE, GCP, InstanceGroups, ScaleSets
from pulumi_holdfast.rehearsal.control_plane import Layout
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.errors import FAILURES, Cancellation
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.instance_types import Ec2InstanceTypes
from pulumi_holdfast.rehearsal.operator_runner.kubelet import Kubelet
from pulumi_holdfast.rehearsal.operator_runner.managed_karpenter import ManagedKarpenter
from pulumi_holdfast.rehearsal.operator_runner.operator_runner import RunnerLayout
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.stacks.cluster_nodes import ClusterNodes
from pulumi_holdfast.rehearsal.stacks.clusters_here import ClustersHere, ConfiguredTrust
from pulumi_holdfast.rehearsal.tools.locate import find_tool


def main() -> int:
    """Run until SIGTERM; returns the exit code."""
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO, stream=sys.stderr)
    stack, root = sys.argv[1:]
    workspace = Workspace(project_root=Path(root))
    try:
        clouds = EngineFolder.of(stack, workspace).cloud_states
        ec2 = Ec2InstanceTypes(CloudState(clouds / "aws.json"))
        layout = RunnerLayout.of(stack, workspace)
        here = ClustersHere(workspace)
        trust = ConfiguredTrust(
            cloud=CloudState(clouds / "aws.json"),
            clusters=here,
            file=Layout.of(stack, workspace).authentication,
        )
        kubelet = Kubelet(layout, lambda tool: find_tool(tool, workspace), ec2.for_node, here.at)
        karpenter = ManagedKarpenter(
            cloud=CloudState(clouds / f"{AZURE}.json"),
            layout=layout,
            find_program=lambda tool: find_tool(tool, workspace),
            crds=workspace.charts_dir / "karpenter-azure" / "crds",
        )
        with _autoscaling(layout.kubeconfig, clouds), _trusting(trust):
            asyncio.run(_serve(kubelet, karpenter))
    except FAILURES as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


async def _serve(kubelet: Kubelet, karpenter: ManagedKarpenter) -> None:
    """Run the kubelet and the managed Karpenter, which has no pod."""
    managed = asyncio.create_task(karpenter.run())
    try:
        await kubelet.run()
    finally:
        managed.cancel()
        with suppress(asyncio.CancelledError):
            await managed


@contextmanager
def _autoscaling(kubeconfig: Path, clouds: Path) -> Generator[None]:
    """Run the cluster autoscalers of the clouds, which have no pods, during the block."""
    cancellation = Cancellation()
    for cloud, groups in ((GCP, InstanceGroups), (AZURE, ScaleSets)):
        client = KubeClient.from_kubeconfig(kubeconfig).under(cancellation)
        state = CloudState(clouds / f"{cloud}.json")
        autoscaler = Autoscaler(client, groups(state), ClusterNodes(kubeconfig, cloud))
        name = f"autoscaler of {cloud}"
        threading.Thread(target=autoscaler.run, args=[cancellation], name=name, daemon=True).start()
    try:
        yield
    finally:
        cancellation.cancel()


@contextmanager
def _trusting(trust: ConfiguredTrust) -> Generator[None]:
    """Let the API server trust the issuers that its EKS cluster is configured with, during the block."""
    cancellation = Cancellation()
    threading.Thread(target=trust.run, args=[cancellation], name="trusted issuers", daemon=True).start()
    try:
        yield
    finally:
        cancellation.cancel()


if __name__ == "__main__":
    sys.exit(main())
