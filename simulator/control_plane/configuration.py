"""What the control plane is made of, rendered for kwokctl and the API server. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields
from importlib.resources import files
from pathlib import Path

import yaml

from holdfast.scheduling.json import Json, JsonValue

# The processes, by the names kwokctl runs them under, and the tool each of them is.
COMPONENTS: Mapping[str, str] = {
    "etcd": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kwok-controller": "kwok",
}
# kwokctl asks the API server whether it serves through kubectl.
TOOLS = (*COMPONENTS.values(), "kubectl")
# kwokctl's names of the ports, in the order of the fields of Ports.
_PORT_OPTIONS = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)


@dataclass(frozen=True, kw_only=True)
class Ports:
    """A free loopback port for each listener of the control plane."""

    etcd: int
    etcd_peer: int
    api_server: int
    controller_manager: int
    scheduler: int
    kwok: int

    @classmethod
    def count(cls) -> int:
        """How many ports a control plane needs."""
        return len(fields(cls))

    @classmethod
    def of(cls, ports: Sequence[int]) -> "Ports":
        """Give each listener one of `ports`."""
        etcd, etcd_peer, api_server, controller_manager, scheduler, kwok = ports
        return cls(
            etcd=etcd,
            etcd_peer=etcd_peer,
            api_server=api_server,
            controller_manager=controller_manager,
            scheduler=scheduler,
            kwok=kwok,
        )


def render_configuration(
    *,
    programs: Mapping[str, Path],
    ports: Ports,
    etcd_dir: Path,
    egress_configuration: Path,
    admission_plugins: Sequence[str] = (),
) -> str:
    """The file kwokctl creates the cluster from: programs, ports and the stages of nodes and pods.

    `programs` maps each of TOOLS to its file; `admission_plugins` are on beside the API server's own.
    """
    plugins = [
        _extra_argument("kube-apiserver", "enable-admission-plugins", plugin) for plugin in admission_plugins
    ]
    configuration: Json = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {
            "runtime": "binary",
            # The default is every interface: a control plane whose admin key lies in a file is not for the network.
            "bindAddress": "127.0.0.1",
            "etcdBinary": str(programs["etcd"]),
            "kubeApiserverBinary": str(programs["kube-apiserver"]),
            "kubeControllerManagerBinary": str(programs["kube-controller-manager"]),
            "kubeSchedulerBinary": str(programs["kube-scheduler"]),
            "kwokControllerBinary": str(programs["kwok"]),
            "kubectlBinary": str(programs["kubectl"]),
            **dict(zip(_PORT_OPTIONS, astuple(ports), strict=True)),
        },
        "componentsPatches": [
            _extra_argument("etcd", "data-dir", str(etcd_dir), override=True),
            _extra_argument("kube-apiserver", "egress-selector-config-file", str(egress_configuration)),
            *plugins,
            # One of each runs: waiting 15 s for the lease of the one that was killed gains nothing.
            _extra_argument("kube-controller-manager", "leader-elect", "false"),
            _extra_argument("kube-scheduler", "leader-elect", "false"),
            # By itself it makes 20 requests a second, which is a minute and more for a hundred Jobs that restart at once:
            # what is measured then is this limit, and clouds raise it for clusters of any size.
            _extra_argument("kube-controller-manager", "kube-api-qps", "500"),
            _extra_argument("kube-controller-manager", "kube-api-burst", "1000"),
        ],
    }
    return f"{yaml.safe_dump(configuration, sort_keys=False)}---\n{_stages()}"


def ports_of(configuration: str) -> Ports | None:
    """The ports in a text that `render_configuration` made; None where it is another text."""
    try:
        document: JsonValue = next(yaml.safe_load_all(configuration), None)
    except yaml.YAMLError:
        return None
    options = document.get("options") if isinstance(document, Mapping) else None
    if not isinstance(options, Mapping):
        return None
    ports = [options.get(key) for key in _PORT_OPTIONS]
    numbers = [port for port in ports if isinstance(port, int)]
    return Ports.of(numbers) if len(numbers) == len(_PORT_OPTIONS) else None


def render_egress(socket: Path) -> str:
    """How the API server reaches Services (webhooks, aggregated APIs): HTTP CONNECT through a unix socket.

    A socket and not a port: the API server reads this once, and whoever answers may be started again later.
    """
    selection: Json = {
        "apiVersion": "apiserver.k8s.io/v1beta1",
        "kind": "EgressSelectorConfiguration",
        "egressSelections": [
            {
                "name": "cluster",
                "connection": {
                    "proxyProtocol": "HTTPConnect",
                    "transport": {"uds": {"udsName": str(socket)}},
                },
            }
        ],
    }
    return yaml.safe_dump(selection, sort_keys=False)


def _extra_argument(component: str, key: str, value: str, *, override: bool = False) -> Json:
    return {"name": component, "extraArgs": [{"key": key, "value": value, "override": override}]}


def _stages() -> str:
    return files("holdfast.simulator.control_plane").joinpath("stages.yaml").read_text(encoding="utf-8")
