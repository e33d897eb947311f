"""What differs when a controller runs as a process here and not in a container. Pure.

Each controller has one function: from its container, with paths, variables and ports already known, to the
process to run. They hold what a container's own network and file system would have given: free ports, and
files where the controller looks for them.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

import yaml

from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.operator_runner.pod_spec import app_of, identity_of

if TYPE_CHECKING:
    from holdfast.scheduling.json import JsonValue
import os

from holdfast.simulator.control_plane.configuration import Cluster
from holdfast.simulator.control_plane.processes import free_ports
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import sequence
from holdfast.simulator.operator_runner.pod_files import PodFiles
from holdfast.simulator.operator_runner.pod_spec import (
    CannotRunError,
    Lookup,
    container_ports,
    expand,
    main_container,
    mounts_of,
    node_of,
    on_this_machine,
    readiness_probe,
    resolve_environment,
)
from holdfast.simulator.operator_runner.process import Command

LOOPBACK = "127.0.0.1"
ADAPTED = "adapted"


@dataclass(frozen=True, kw_only=True)
class Container:
    """A container, ready to be adapted.

    `ports` maps each container port to a free port of this machine; `mounts` each mounted path to where it is
    here; `files` holds the text of each mounted file by its path here; `folder` is the pod's own. `market` says what
    the cloud sells, in the form that Karpenter's simulated provider reads, empty where the pod knows it itself;
    `kubelets` is the kubeconfig with which machines join the cluster.
    """

    namespace: str
    args: tuple[str, ...]
    variables: Mapping[str, str]
    ports: Mapping[int, int]
    mounts: Mapping[str, Path] = field(default_factory=dict[str, Path])
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])
    folder: Path = Path()
    market: str = ""
    kubelets: Path = Path()


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A process to run, and files to write before."""

    args: tuple[str, ...]
    variables: Mapping[str, str]
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])


@dataclass(frozen=True, kw_only=True)
class Controller:
    """How pods of one application become processes of this machine.

    `namespace` is where the application's own pods are: any other pod may bear its name. `tool` is the program, or,
    with a `module`, only what a log is named after: that module of this checkout is run by this interpreter.
    `extra_ports` are those it listens on without its container declaring them; `buys_from` is the variable that
    names the file with what is sold, None for a controller that buys nothing.
    """

    namespace: str
    tool: str
    adapt: Callable[[Container], Invocation]
    module: str | None = None
    extra_ports: tuple[int, ...] = ()
    buys_from: str | None = None


def _jobset(container: Container) -> Invocation:
    """JobSet takes its webhook's port and certificates from its configuration file alone."""
    prefix = "--config="
    configured = next((arg for arg in container.args if arg.startswith(prefix)), prefix)
    text = container.files.get(Path(configured.removeprefix(prefix)), "")
    target = container.folder / ADAPTED / "controller_manager_config.yaml"
    kept = tuple(arg for arg in container.args if not arg.startswith(prefix))
    return Invocation(
        args=(
            *kept,
            f"{prefix}{target}",
            f"--metrics-bind-address={LOOPBACK}:{container.ports[8443]}",
            f"--health-probe-bind-address={LOOPBACK}:{container.ports[8081]}",
        ),
        variables=container.variables,
        files={target: _jobset_configuration(text, container), **_jobset_marker(container)},
    )


# The certificate rotator waits until this file exists, at a path that no setting changes; it never reads it.
JOBSET_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108


def _jobset_configuration(text: str, container: Container) -> str:
    parsed: JsonValue = yaml.safe_load(text) if text else None
    webhook: Json = {
        **mapping(mapping(parsed).get("webhook")),
        "host": LOOPBACK,
        "port": container.ports[9443],
        "certDir": str(container.mounts.get(JOBSET_CERTIFICATES, JOBSET_CERTIFICATES)),
    }
    # Outside a pod no file says which namespace the lease belongs in.
    election: Json = {
        **mapping(mapping(parsed).get("leaderElection")),
        "resourceNamespace": container.namespace,
    }
    configured: Json = {**mapping(parsed), "leaderElection": election, "webhook": webhook}
    return yaml.safe_dump(configured, sort_keys=False)


def _jobset_marker(container: Container) -> Mapping[Path, str]:
    certificates = container.mounts.get(JOBSET_CERTIFICATES)
    return {Path(JOBSET_CERTIFICATES) / "tls.crt": ""} if certificates else {}


def _kuberay(container: Container) -> Invocation:
    return Invocation(
        args=(
            *container.args,
            f"--metrics-addr={LOOPBACK}:{container.ports[8080]}",
            f"--health-probe-bind-address={LOOPBACK}:{container.ports[8082]}",
            # Outside a pod no file says which namespace the lease belongs in.
            f"--leader-election-namespace={container.namespace}",
        ),
        variables=container.variables,
    )


INSTANCE_TYPES = "INSTANCE_TYPES_FILE_PATH"


def _karpenter(container: Container) -> Invocation:
    """Karpenter has a setting for its ports' numbers and none for their address.

    Of a cloud it learns what is sold by asking; the simulated provider reads it in a file.
    """
    listeners = {"METRICS_PORT": 8080, "HEALTH_PROBE_PORT": 8081}
    ports = {name: str(container.ports[_port(container, name, usual)]) for name, usual in listeners.items()}
    market = container.folder / ADAPTED / "instance-types.json"
    files = {market: container.market} if container.market else {}
    added = {
        "LEADER_ELECTION_NAMESPACE": container.namespace,
        "KUBELET_KUBECONFIG": str(container.kubelets),
        **({INSTANCE_TYPES: str(market)} if files else {}),
    }
    return Invocation(args=container.args, variables={**added, **container.variables, **ports}, files=files)


def _port(container: Container, variable: str, usual: int) -> int:
    wanted = container.variables.get(variable, "")
    return int(wanted) if wanted.isdigit() and int(wanted) in container.ports else usual


FALLBACK = "holdfast.fallback"
_CHECKOUT = Path(__file__).resolve().parents[2]


def _fallback(container: Container) -> Invocation:
    """Holdfast's own controller is built into its image from this checkout, and run from it here."""
    served = (f"--address={LOOPBACK}", f"--port={container.ports[8080]}")
    return Invocation(
        args=("-m", FALLBACK, *container.args, *served),
        variables={"PYTHONPATH": str(_CHECKOUT), "PYTHONUNBUFFERED": "1", **container.variables},
    )


CONTROLLERS: Mapping[str, Controller] = MappingProxyType(
    {
        CONTROLLER: Controller(
            namespace=CONTROLLER_NAMESPACE, tool=CONTROLLER, adapt=_fallback, module=FALLBACK
        ),
        "jobset": Controller(namespace="jobset-system", tool="jobset-controller", adapt=_jobset),
        "kuberay-operator": Controller(
            namespace="kuberay-system", tool="kuberay-operator", adapt=_kuberay, extra_ports=(8082,)
        ),
        "karpenter": Controller(
            namespace="karpenter", tool="karpenter-kwok", adapt=_karpenter, buys_from=INSTANCE_TYPES
        ),
    }
)
"""The controllers that are run, by the `app.kubernetes.io/name` that their charts give to their pods.

The simulated cluster leaves exactly these pods alone: its stages name them too.
"""


def controller_of(pod: Json) -> Controller | None:
    """The controller whose pod this is, None for a pod that is only simulated.

    By what a chart writes anyway: a pod is the same on a cloud and in its rehearsal.
    """
    controller = CONTROLLERS.get(app_of(pod))
    return controller if controller and controller.namespace == identity_of(pod).namespace else None


@dataclass(frozen=True, kw_only=True)
class RunnerContext:
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
    context: RunnerContext,
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
            market=_market(pod, controller, variables, context),
            kubelets=context.kubelets,
        )
    )
    files.write_kubeconfig(context.cluster)
    files.write_all(invocation.files)
    command = Command(
        program=program,
        args=invocation.args,
        variables={**_base(files, context), **invocation.variables},
        folder=context.folder,
        log=context.logs / f"{controller.tool}.log",
    )
    return Prepared(command=command, ports=ports)


def _market(pod: Json, controller: Controller, variables: Mapping[str, str], context: RunnerContext) -> str:
    """What the cloud sells where the pod is; empty for a pod that buys nothing or brings its own list."""
    if controller.buys_from is None or controller.buys_from in variables:
        return ""
    node = context.client.get("v1", "Node", node_of(pod))
    if node is None:
        raise CannotRunError(f"its node {node_of(pod)} has gone")
    return context.market(node)


def _ports_here(container: Json, controller: Controller) -> Mapping[int, int]:
    probe = readiness_probe(container)
    probed = () if probe is None else (probe.port,)
    listening = {*container_ports(container).values(), *controller.extra_ports, *probed}
    return dict(zip(sorted(listening), free_ports(len(listening)), strict=True))


def _base(files: PodFiles, context: RunnerContext) -> Mapping[str, str]:
    """What a container would find: no variable of the user's reaches it, above all none of a proxy's."""
    return {
        "PATH": os.defpath,
        "HOME": str(files.folder),
        "KUBECONFIG": str(files.kubeconfig),
        # Names like x.y.svc.cluster.local mean nothing outside a cluster; the API server is on the loopback.
        "HTTP_PROXY": context.cluster_proxy,
        "NO_PROXY": f"{LOOPBACK},localhost",
    }
