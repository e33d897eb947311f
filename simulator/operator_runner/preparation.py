"""From a pod to the process that runs behind it: resolves, places and adapts."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.control_plane.configuration import Cluster
from holdfast.simulator.control_plane.processes import free_ports
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import sequence
from holdfast.simulator.operator_runner.adaptation import LOOPBACK, Container, Controller
from holdfast.simulator.operator_runner.containers import (
    CannotRunError,
    container_ports,
    identity_of,
    main_container,
    node_of,
    readiness_probe,
)
from holdfast.simulator.operator_runner.environment import Lookup, expand, resolve_environment
from holdfast.simulator.operator_runner.pod_files import PodFiles
from holdfast.simulator.operator_runner.supervised_process import Command
from holdfast.simulator.operator_runner.volumes import mounts_of, on_this_machine


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What all hosted pods share.

    `cluster_proxy` is the address of the HTTP proxy through which names inside the cluster are reached. The
    processes run in `folder`, by which they are recognised; each pod's files are in a folder under `pods`. With
    `kubelets`, a kubeconfig, machines join the cluster; `market` says what is sold to a buyer on a node.
    """

    client: KubeClient
    cluster: Cluster
    cluster_proxy: str
    folder: Path
    pods: Path
    logs: Path
    kubelets: Path
    market: Callable[[Json], str]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A process ready to start, and where on this machine it will serve each of its container's ports."""

    command: Command
    ports: Mapping[int, int]


def prepare(
    pod: Json,
    controller: Controller,
    program: Path,
    files: PodFiles,
    surroundings: Surroundings,
    lookup: Lookup,
) -> Prepared:
    """Write the pod's files and say what to run. Blocks: it may ask the API server.

    Raises CannotRunError where something the pod names does not exist.
    """
    container = main_container(pod)
    mounts = mounts_of(pod, files.volumes)
    variables = resolve_environment(pod, lookup)
    ports = _ports_here(container, controller)
    arguments = [expand(str(arg), variables) for arg in sequence(container.get("args"))]
    invocation = controller.adapt(
        Container(
            namespace=identity_of(pod).namespace,
            args=tuple(on_this_machine(arg, mounts) for arg in arguments),
            variables={name: on_this_machine(value, mounts) for name, value in variables.items()},
            ports=ports,
            mounts=mounts,
            files=files.texts(),
            folder=files.folder,
            market=_market(pod, controller, variables, surroundings),
            kubelets=surroundings.kubelets,
        )
    )
    files.write_kubeconfig(surroundings.cluster)
    files.write_all(invocation.files)
    command = Command(
        program=program,
        args=invocation.args,
        variables={**_base(files, surroundings), **invocation.variables},
        folder=surroundings.folder,
        log=surroundings.logs / f"{controller.tool}.log",
    )
    return Prepared(command=command, ports=ports)


def _market(
    pod: Json, controller: Controller, variables: Mapping[str, str], surroundings: Surroundings
) -> str:
    """What the cloud sells where the pod is; empty for a pod that buys nothing or brings its own list."""
    if controller.buys_from is None or controller.buys_from in variables:
        return ""
    node = surroundings.client.get("v1", "Node", node_of(pod))
    if node is None:
        raise CannotRunError(f"its node {node_of(pod)} has gone")
    return surroundings.market(node)


def _ports_here(container: Json, controller: Controller) -> Mapping[int, int]:
    probe = readiness_probe(container)
    probed = () if probe is None else (probe.port,)
    listening = {*container_ports(container).values(), *controller.extra_ports, *probed}
    return dict(zip(sorted(listening), free_ports(len(listening)), strict=True))


def _base(files: PodFiles, surroundings: Surroundings) -> Mapping[str, str]:
    """What a container would find: no variable of the user's reaches it, above all none of a proxy's."""
    return {
        "PATH": os.defpath,
        "HOME": str(files.folder),
        "KUBECONFIG": str(files.kubeconfig),
        # Names like x.y.svc.cluster.local mean nothing outside a cluster; the API server is on the loopback.
        "HTTP_PROXY": surroundings.cluster_proxy,
        "NO_PROXY": f"{LOOPBACK},localhost",
    }
