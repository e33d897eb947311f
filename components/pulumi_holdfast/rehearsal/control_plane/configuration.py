"""The files of a control plane: their paths, kwokctl's configuration, and kubeconfigs.

`ControlPlane` writes these files before it runs kwokctl; the operator runner reads the kubeconfig.
"""

import base64
import hashlib
import os
import shutil
import ssl
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias
from urllib.error import URLError
from urllib.request import HTTPSHandler, ProxyHandler, build_opener

import yaml

from pulumi_holdfast.ladder.json import Json, JsonValue, mapping, sequence
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE
from pulumi_holdfast.ladder.operators import OPERATORS
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace

# Linux binds no unix socket whose path, with the final zero, is longer than 108 bytes.
LONGEST_SOCKET_PATH = 107


@dataclass(frozen=True, kw_only=True)
class Layout:
    """The paths of the control plane of one stack. Creates none of them."""

    stack: str
    stack_dir: Path
    kubeconfig: Path

    @classmethod
    def of(cls, stack: str, workspace: Workspace) -> "Layout":
        """The paths of the control plane of `stack` in `workspace`."""
        return cls(
            stack=stack,
            stack_dir=workspace.stack_dir(stack).resolve(),
            kubeconfig=workspace.kubeconfig(stack).resolve(),
        )

    @property
    def home(self) -> Path:
        """All files of the control plane except the kubeconfig."""
        return self.stack_dir / "control-plane"

    @property
    def cluster_dir(self) -> Path:
        """The working directory of every process of the control plane, which identifies them."""
        return self.home / "clusters" / self.stack

    @property
    def saved_configuration(self) -> Path:
        """The ports, programs and arguments that kwokctl saved."""
        return self.cluster_dir / "kwok.yaml"

    @property
    def pids_dir(self) -> Path:
        """One file per process, written by kwokctl."""
        return self.cluster_dir / "pids"

    @property
    def logs_dir(self) -> Path:
        """One log per process, written by kwokctl."""
        return self.cluster_dir / "logs"

    @property
    def pki_dir(self) -> Path:
        """Certificates and keys, including the key that signs service account tokens."""
        return self.cluster_dir / "pki"

    @property
    def etcd_dir(self) -> Path:
        """The data of the cluster. Outside `cluster_dir`, which kwokctl removes when a creation fails."""
        return self.home / "etcd"

    @property
    def configuration(self) -> Path:
        """The configuration file of kwokctl."""
        return self.home / "configuration.yaml"

    @property
    def egress_configuration(self) -> Path:
        """The egress configuration of the API server."""
        return self.home / "egress.yaml"

    @property
    def authentication(self) -> Path:
        """The AuthenticationConfiguration of the API server, for a cloud whose clusters trust other issuers."""
        return self.home / "authentication.yaml"

    @property
    def issuer(self) -> str:
        """An issuer of tokens that no other control plane has, so that another one can trust it."""
        return f"https://{self.stack}.invalid"

    @property
    def lock(self) -> Path:
        """The lock of the run that starts or stops this control plane."""
        return self.stack_dir / "control-plane.lock"

    @property
    def egress_socket(self) -> Path:
        """The socket through which the API server calls Services.

        Beside the other files if the path is short enough for a socket, otherwise in a separate folder below the
        temporary directory. The listener must create that folder with mode 0700.
        """
        wanted = self.stack_dir / "egress.sock"
        if len(str(wanted).encode()) <= LONGEST_SOCKET_PATH:
            return wanted
        digest = hashlib.sha256(str(wanted).encode()).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"holdfast-{digest}" / "egress.sock"


# The tool of each process, by the process name that kwokctl uses.
COMPONENTS: Mapping[str, str] = {
    "etcd": "etcd",
    "kube-apiserver": "kube-apiserver",
    "kube-controller-manager": "kube-controller-manager",
    "kube-scheduler": "kube-scheduler",
    "kwok-controller": "kwok",
}
# kwokctl checks the health of the API server with kubectl.
TOOLS = (*COMPONENTS.values(), "kubectl")
_DISABLED_CONTROLLERS = ("-taint-eviction-controller", "-validatingadmissionpolicy-status-controller")
#: The options of kwokctl for the ports of its listeners.
PORT_OPTIONS: tuple[str, ...] = (
    "etcdPort",
    "etcdPeerPort",
    "kubeApiserverPort",
    "kubeControllerManagerPort",
    "kubeSchedulerPort",
    "kwokControllerPort",
)


# The flags of the API server that kwokctl sets: a second value would be added to its own.
_KWOKCTL_FLAGS = frozenset({"service-account-issuer"})


#: A free loopback port for each of PORT_OPTIONS.
Ports: TypeAlias = Mapping[str, int]


def render_configuration(
    *,
    programs: Mapping[str, Path],
    ports: Ports,
    etcd_dir: Path,
    egress_configuration: Path,
    arguments: Sequence[tuple[str, str]] = (),
) -> str:
    """The configuration file of kwokctl: programs, ports and the stages of nodes and pods.

    `programs` maps each of TOOLS to its file; `arguments` are additional flags of the API server with their values.
    """
    additional = [
        _extra_argument("kube-apiserver", flag, value, override=flag in _KWOKCTL_FLAGS)
        for flag, value in arguments
    ]
    configuration: Json = {
        "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
        "kind": "KwokctlConfiguration",
        "options": {
            "runtime": "binary",
            # The default is every interface; the admin key is in a file, so the network must not reach this server.
            "bindAddress": "127.0.0.1",
            "etcdBinary": str(programs["etcd"]),
            "kubeApiserverBinary": str(programs["kube-apiserver"]),
            "kubeControllerManagerBinary": str(programs["kube-controller-manager"]),
            "kubeSchedulerBinary": str(programs["kube-scheduler"]),
            "kwokControllerBinary": str(programs["kwok"]),
            "kubectlBinary": str(programs["kubectl"]),
            **ports,
        },
        "componentsPatches": [
            _extra_argument("etcd", "data-dir", str(etcd_dir), override=True),
            _extra_argument("kube-apiserver", "egress-selector-config-file", str(egress_configuration)),
            *additional,
            # There is one replica of each: do not wait 15 s for the lease of a killed process.
            _extra_argument("kube-controller-manager", "leader-elect", "false"),
            # Karpenter's new nodes lose a NoExecute taint just before pods are bound to them. On a busy computer the first
            # controller learns of it late, and evicts the pods: one without a controller of its own is never created again.
            # The second one checks types in policies, which takes more CPU time than all other controllers together, for
            # warnings in a status that nothing reads.
            _extra_argument("kube-controller-manager", "controllers", f"*,{','.join(_DISABLED_CONTROLLERS)}"),
            # As in managed clusters: admission tells the creator of a job's pods from a tenant by its account.
            _extra_argument("kube-controller-manager", "use-service-account-credentials", "true"),
            _extra_argument("kube-scheduler", "leader-elect", "false"),
            # The default of 20 requests per second takes over a minute for a hundred Jobs that restart at once. Managed
            # clusters use a higher limit, too.
            _extra_argument("kube-controller-manager", "kube-api-qps", "500"),
            _extra_argument("kube-controller-manager", "kube-api-burst", "1000"),
            # A quota counts a kind that was defined after the quota at the next of these times; the default is 5 minutes.
            _extra_argument("kube-controller-manager", "resource-quota-sync-period", "10s"),
        ],
    }
    return f"{yaml.safe_dump(configuration, sort_keys=False)}---\n{_stages()}"


def ports_of(configuration: str) -> Ports | None:
    """The ports in a configuration from `render_configuration`; None for any other text."""
    try:
        document: JsonValue = next(yaml.load_all(configuration, yaml.CSafeLoader), None)
    except yaml.YAMLError:
        return None
    options = document.get("options") if isinstance(document, Mapping) else None
    if not isinstance(options, Mapping):
        return None
    ports = {key: port for key in PORT_OPTIONS if isinstance(port := options.get(key), int)}
    return ports if len(ports) == len(PORT_OPTIONS) else None


def render_egress(socket: Path) -> str:
    """The egress configuration: the API server reaches Services (webhooks, aggregated APIs) through a unix socket.

    The protocol is HTTP CONNECT. A socket path, unlike a port, stays valid when the listener restarts, and the API
    server reads this file only once.
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


def authentication_configuration(authenticators: Sequence[Json]) -> Json:
    """The configuration of an API server that also trusts the tokens of other issuers."""
    return {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": list(authenticators),
    }


def _extra_argument(component: str, key: str, value: str, *, override: bool = False) -> Json:
    return {"name": component, "extraArgs": [{"key": key, "value": value, "override": override}]}


class Mark(NamedTuple):
    """A label with its value."""

    key: str
    value: str


#: The label of pods that the operator runner runs as processes; admission sets it, on clusters of the cloud `local` alone.
RUNS: Final = Mark("rehearsal.holdfast.dev/runs", "process")


def _stages() -> str:
    """The stages of nodes and pods, without those of the pods that the operator runner runs."""
    text = (
        files("pulumi_holdfast.rehearsal.control_plane").joinpath("stages.yaml").read_text(encoding="utf-8")
    )
    own = (f"{operator.namespace}/{name}" for name, operator in OPERATORS.items())
    operators = f"[{', '.join((*own, f'{CONTROLLER_NAMESPACE}/{CONTROLLER}'))}]"
    simulated = (
        f'{{key: \'.metadata.labels["{RUNS.key}"] // "no"\', operator: NotIn, values: [{RUNS.value}]}}'
    )
    return text.replace("[OPERATORS]", operators).replace("SIMULATED", simulated)


@dataclass(frozen=True, kw_only=True)
class KubeconfigCluster:
    """The address and the certificate authority (PEM) of an API server."""

    server: str
    authority: bytes


def render_kubeconfig(name: str, cluster: KubeconfigCluster, user: Json) -> str:
    """A kubeconfig with one cluster and one user."""
    authority = base64.b64encode(cluster.authority).decode("ascii")
    entry: Json = {"server": cluster.server, "certificate-authority-data": authority}
    document: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": entry}],
        "users": [{"name": name, "user": user}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "current-context": name,
    }
    return yaml.safe_dump(document, sort_keys=False)


def administrator(certificate: bytes, key: bytes) -> Json:
    """A kubeconfig user with an embedded client certificate and key (both PEM)."""
    encoded = {"client-certificate-data": certificate, "client-key-data": key}
    return {field: base64.b64encode(data).decode("ascii") for field, data in encoded.items()}


def read_cluster(kubeconfig: Path) -> KubeconfigCluster:
    """The cluster of a kubeconfig from `render_kubeconfig`. Raises RehearsalError for any other or no file."""
    try:
        document: JsonValue = yaml.safe_load(kubeconfig.read_text(encoding="utf-8"))
        entry = mapping(mapping(next(iter(sequence(mapping(document).get("clusters"))), None)).get("cluster"))
        authority = base64.b64decode(str(entry["certificate-authority-data"]), validate=True)
        return KubeconfigCluster(server=str(entry["server"]), authority=authority)
    except (OSError, KeyError, ValueError, yaml.YAMLError) as error:
        raise RehearsalError(
            f"{kubeconfig} is not the kubeconfig of a local control plane ({error}); start the control plane first"
        ) from error


def answers_ready(*, server: str, pki_dir: Path, timeout_seconds: float = 2) -> bool:
    """Whether the API server at `server` reports that it is ready."""
    try:
        context = ssl.create_default_context(cafile=str(pki_dir / "ca.crt"))
        context.load_cert_chain(str(pki_dir / "admin.crt"), str(pki_dir / "admin.key"))
        # The address is on the loopback interface: do not use a proxy from the environment.
        opener = build_opener(ProxyHandler({}), HTTPSHandler(context=context))
        with opener.open(f"{server}/readyz", timeout=timeout_seconds) as answer:
            return answer.status == 200
    except (URLError, OSError):
        return False


@dataclass(frozen=True)
class ControlPlaneFiles:
    """Writes and reads the files that a control plane starts from."""

    layout: Layout
    arguments: tuple[tuple[str, str], ...] = ()

    def write(self, programs: Mapping[str, Path], ports: Ports) -> None:
        """Write the configuration of kwokctl and the API server, and remove the state of an earlier start."""
        self.layout.etcd_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
        _forget_processes(self.layout)
        self.layout.configuration.write_text(self._rendered(programs, ports))
        self.layout.egress_configuration.write_text(render_egress(self.layout.egress_socket))
        if not self.layout.authentication.exists():
            self.layout.authentication.write_text(yaml.safe_dump(authentication_configuration([])))

    def are_current(self, programs: Mapping[str, Path]) -> bool:
        """Whether `write` would write the same files for `programs`."""
        saved = self._saved()
        ports = ports_of(saved)
        return ports is not None and saved == self._rendered(programs, ports)

    def server(self) -> str | None:
        """The address of the API server; None before the first start."""
        ports = ports_of(self._saved())
        return f"https://127.0.0.1:{ports['kubeApiserverPort']}" if ports else None

    def write_kubeconfig(self) -> None:
        """Write the kubeconfig of the administrator. Only the owner can read the file, from its creation on."""
        server = self.server()
        if server is None:
            raise RehearsalError(
                f"{self.layout.configuration} was removed while the control plane started; start it again"
            )
        pki = self.layout.pki_dir
        cluster = KubeconfigCluster(server=server, authority=(pki / "ca.crt").read_bytes())
        user = administrator((pki / "admin.crt").read_bytes(), (pki / "admin.key").read_bytes())
        text = render_kubeconfig(f"holdfast-{self.layout.stack}", cluster, user)
        draft = self.layout.kubeconfig.with_suffix(".new")
        draft.unlink(missing_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.replace(self.layout.kubeconfig)

    def _rendered(self, programs: Mapping[str, Path], ports: Ports) -> str:
        return render_configuration(
            programs=programs,
            ports=ports,
            etcd_dir=self.layout.etcd_dir,
            egress_configuration=self.layout.egress_configuration,
            arguments=self.arguments,
        )

    def _saved(self) -> str:
        configuration = self.layout.configuration
        return configuration.read_text() if configuration.is_file() else ""


def _forget_processes(layout: Layout) -> None:
    """Remove the pid files of kwokctl: after a reboot, it would kill the processes that have these pids now."""
    for component in COMPONENTS:
        (layout.pids_dir / f"{component}.pid").unlink(missing_ok=True)
        (layout.logs_dir / f"{component}.log").unlink(missing_ok=True)
    layout.saved_configuration.unlink(missing_ok=True)
    # kwokctl links the programs here once; it would ignore a new version of a program.
    shutil.rmtree(layout.cluster_dir / "bin", ignore_errors=True)
