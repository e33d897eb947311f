"""Turns the pod of a controller into a local process: resolves its container and adapts it to this machine.

Each controller has one function that maps its container to the process. It replaces what the network and the file
system of a container provide: own ports, and files at the paths that the controller reads.
"""

import base64
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

import yaml

from pulumi_holdfast.controller.jobs.pods_and_nodes import node_of
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.ladder.operators import OPERATORS
from pulumi_holdfast.rehearsal.control_plane.configuration import KubeconfigCluster
from pulumi_holdfast.rehearsal.control_plane.processes import free_ports
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.pod_files import PodFiles
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import (
    CannotRunError,
    Lookup,
    app_of,
    container_ports,
    expand,
    identity_of,
    main_container,
    mounts_of,
    on_this_machine,
    readiness_probe,
    resolve_environment,
)
from pulumi_holdfast.rehearsal.operator_runner.process import Command

LOOPBACK = "127.0.0.1"
ADAPTED = "adapted"


@dataclass(frozen=True, kw_only=True)
class Container:
    """A resolved container.

    `ports` maps container ports to free local ports, `mounts` maps mount paths to local paths, and `files` maps local
    paths of mounted files to their text; `folder` is the folder of the pod. `market` has the instance types of the
    cloud in the format of Karpenter's kwok provider, empty if the pod brings its own; `kubelets` is the kubeconfig of
    new machines; `cluster_at` returns the cluster on this machine whose API server has an address.
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
    cluster_at: Callable[[str], KubeconfigCluster | None] = field(default=lambda _: None)


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """A process to run, and the files to write first."""

    args: tuple[str, ...]
    variables: Mapping[str, str]
    files: Mapping[Path, str] = field(default_factory=dict[Path, str])


@dataclass(frozen=True, kw_only=True)
class SimulatedController:
    """How the pods of one application run as local processes.

    Only pods in `namespace` belong to the application. `tool` is the program; with a `module`, this interpreter runs
    that module, and `tool` only names the log. `extra_ports` are ports that the container does not
    declare. `buys_from` is the variable with the path of the instance types, None for a controller without them.
    """

    namespace: str
    tool: str
    adapt: Callable[[Container], Invocation]
    module: str | None = None
    extra_ports: tuple[int, ...] = ()
    buys_from: str | None = None


def _jobset(container: Container) -> Invocation:
    """JobSet reads the port and the certificates of its webhook only from its configuration file."""
    prefix = "--config="
    configured = next((arg for arg in container.args if arg.startswith(prefix)), prefix)
    text = container.files.get(Path(configured.removeprefix(prefix)), "")
    target = container.folder / ADAPTED / "controller_manager_config.yaml"
    others = tuple(arg for arg in container.args if not arg.startswith(prefix))
    return Invocation(
        args=(
            *others,
            f"{prefix}{target}",
            f"--metrics-bind-address={LOOPBACK}:{container.ports[8443]}",
            f"--health-probe-bind-address={LOOPBACK}:{container.ports[8081]}",
        ),
        variables=container.variables,
        files={target: _jobset_configuration(text, container), **_jobset_marker(container)},
    )


# The certificate rotator waits for a file in this folder, which no setting changes; it never reads the file.
JOBSET_CERTIFICATES = "/tmp/k8s-webhook-server/serving-certs"  # noqa: S108 - where JobSet reads them


def _jobset_configuration(text: str, container: Container) -> str:
    parsed: JsonValue = yaml.safe_load(text) if text else None
    webhook: Json = {
        **mapping(mapping(parsed).get("webhook")),
        "host": LOOPBACK,
        "port": container.ports[9443],
        "certDir": str(container.mounts.get(JOBSET_CERTIFICATES, JOBSET_CERTIFICATES)),
    }
    # Outside a pod, no file contains the namespace of the lease.
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
            # Outside a pod, no file contains the namespace of the lease.
            f"--leader-election-namespace={container.namespace}",
        ),
        variables=container.variables,
    )


INSTANCE_TYPES = "INSTANCE_TYPES_FILE_PATH"


def _karpenter(container: Container) -> Invocation:
    """Karpenter has settings for its ports, but not for their address.

    The provider of a cloud requests the instance types; the kwok provider reads them from a file.
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


FALLBACK = "pulumi_holdfast.controller"
_OTHER_CLUSTER = "--cluster"
_PACKAGES = Path(__file__).resolve().parents[3]


def _fallback(container: Container) -> Invocation:
    """The fallback controller runs from the archives that its pod mounts, with no package of this environment.

    An image with the program in it is not available here: this checkout takes its place.
    """
    served = (f"--address={LOOPBACK}", f"--port={container.ports[8080]}")
    isolated = ("-S",) if "PYTHONPATH" in container.variables else ()
    arguments, kubeconfigs = list[str](), dict[Path, str]()
    for arg in container.args:
        option, _, value = arg.partition("=")
        if option == _OTHER_CLUSTER:
            name, _, path = value.partition("=")
            here = container.folder / ADAPTED / "clusters" / name
            kubeconfigs[here] = _kubeconfig_here(container.files.get(Path(path), ""), container)
            arg = f"{option}={name}={here}"
        arguments.append(arg)
    return Invocation(
        args=(*isolated, "-m", FALLBACK, *arguments, *served),
        variables={"PYTHONPATH": str(_PACKAGES), "PYTHONUNBUFFERED": "1", **container.variables},
        files=kubeconfigs,
    )


def _kubeconfig_here(text: str, container: Container) -> str:
    """The kubeconfig of another cluster: an API server on this machine at its address here, and the local path of the token."""
    document: JsonValue = yaml.safe_load(text) if text else None
    clusters = [mapping(each) for each in sequence(mapping(document).get("clusters"))]
    users = [mapping(each) for each in sequence(mapping(document).get("users"))]
    adapted: Json = {
        **mapping(document),
        "clusters": [
            {**each, "cluster": _server_here(mapping(each["cluster"]), container)} for each in clusters
        ],
        "users": [{**each, "user": _token_here(mapping(each["user"]), container)} for each in users],
    }
    return json.dumps(adapted)


def _server_here(cluster: Json, container: Container) -> Json:
    found = container.cluster_at(str(cluster.get("server")))
    if found is None:
        return cluster
    authority = base64.b64encode(found.authority).decode("ascii")
    return {**cluster, "server": found.server, "certificate-authority-data": authority}


def _token_here(user: Json, container: Container) -> Json:
    return {**user, "tokenFile": on_this_machine(str(user.get("tokenFile")), container.mounts)}


CONTROLLERS: Mapping[str, SimulatedController] = MappingProxyType(
    {
        CONTROLLER: SimulatedController(
            namespace=CONTROLLER_NAMESPACE, tool=CONTROLLER, adapt=_fallback, module=FALLBACK
        ),
        "jobset": SimulatedController(
            namespace=OPERATORS["jobset"].namespace, tool="jobset-controller", adapt=_jobset
        ),
        "kuberay-operator": SimulatedController(
            namespace=OPERATORS["kuberay-operator"].namespace,
            tool="kuberay-operator",
            adapt=_kuberay,
            extra_ports=(8082,),
        ),
        "karpenter": SimulatedController(
            namespace=OPERATORS["karpenter"].namespace,
            tool="karpenter-kwok",
            adapt=_karpenter,
            buys_from=INSTANCE_TYPES,
        ),
    }
)
"""The controllers by the `app.kubernetes.io/name` of their pods.

The kwok stages of the control plane exclude exactly these pods.
"""


def controller_of(pod: Json) -> SimulatedController | None:
    """The controller of a pod, None for a simulated pod. Uses labels that the charts set in every cluster."""
    controller = CONTROLLERS.get(app_of(pod))
    return controller if controller and controller.namespace == identity_of(pod).namespace else None


@dataclass(frozen=True, kw_only=True)
class RunnerContext:
    """What all pods of the operator runner share.

    `cluster_proxy` is the HTTP proxy for names inside the cluster. The processes run in `folder`, which identifies
    them; the files of each pod are in a folder below `pods`. `kubelets` is the kubeconfig of new machines; `market`
    returns the instance types that a Karpenter on a node can buy; `cluster_at` returns the cluster on this machine whose
    API server has an address.
    """

    client: KubeClient
    cluster: KubeconfigCluster
    cluster_proxy: str
    folder: Path
    pods: Path
    logs: Path
    kubelets: Path
    market: Callable[[Json], str]
    cluster_at: Callable[[str], KubeconfigCluster | None]


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """A process to start, and the local port of each container port."""

    command: Command
    ports: Mapping[int, int]


def prepare(
    pod: Json,
    controller: SimulatedController,
    program: Path,
    files: PodFiles,
    context: RunnerContext,
    lookup: Lookup,
) -> Prepared:
    """Write the files of a pod and return its process. Blocks, because it may call the API server.

    Raises CannotRunError if an object that the pod references does not exist.
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
            cluster_at=context.cluster_at,
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


def _market(
    pod: Json, controller: SimulatedController, variables: Mapping[str, str], context: RunnerContext
) -> str:
    """The instance types for a pod; empty for a pod that needs none or brings its own."""
    if controller.buys_from is None or controller.buys_from in variables:
        return ""
    node = context.client.get("v1", "Node", node_of(pod))
    if node is None:
        raise CannotRunError(f"its node {node_of(pod)} no longer exists")
    return context.market(node)


def _ports_here(container: Json, controller: SimulatedController) -> Mapping[int, int]:
    probe = readiness_probe(container)
    probed = () if probe is None else (probe.port,)
    listening = {*container_ports(container).values(), *controller.extra_ports, *probed}
    return dict(zip(sorted(listening), free_ports(len(listening)), strict=True))


def _base(files: PodFiles, context: RunnerContext) -> Mapping[str, str]:
    """The variables of every process. It gets no variable of the user, in particular no proxy."""
    return {
        "PATH": os.defpath,
        "HOME": str(files.folder),
        "KUBECONFIG": str(files.kubeconfig),
        # Names such as x.y.svc.cluster.local resolve only through this proxy; the API server is on the loopback.
        "HTTP_PROXY": context.cluster_proxy,
        "NO_PROXY": f"{LOOPBACK},localhost",
    }
