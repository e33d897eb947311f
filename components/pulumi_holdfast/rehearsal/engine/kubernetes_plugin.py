"""Passes the engine's calls on to the real Kubernetes plugin, led to the control plane on this machine.

The plugin is a process for each provider instance, as under the engine. Only what a rehearsal changes is read: the
kubeconfig, the addresses of charts, clusters that are unreachable, and injected faults.
"""

import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from json import dumps
from pathlib import Path
from typing import Any, Final, TypeAlias, cast

import grpc
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer, ResourceProviderStub

from pulumi_holdfast.controller.kube.client import Unreachable
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.api_server import NoSuchKind
from pulumi_holdfast.rehearsal.engine.charts import RELEASE, ChartMirror, give_back
from pulumi_holdfast.rehearsal.engine.checkpoint import PendingOperation
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext, read_connection
from pulumi_holdfast.rehearsal.engine.plugin import MESSAGE_SIZES
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient

# ruff: noqa: N802 - names of the methods are the protocol's

#: Returns the client error for an unreachable API server, None for a reachable one.
Reach: TypeAlias = Callable[[KubeconfigContext], str | None]

#: The plugin waits ten minutes. A simulated pod ends at once and a machine in seconds, so a longer wait cannot succeed.
LONGEST_DELETE_SECONDS = 300.0
_END_SECONDS: Final = 10.0
_SETTING: Final = "kubernetes:config:"
_FORWARDED: Final = (
    *("Parameterize", "GetSchema", "CheckConfig", "DiffConfig", "Invoke", "Call", "Diff", "Construct"),
    *("Read", "Cancel", "GetPluginInfo", "GetMapping", "GetMappings"),
)


def everywhere(_: KubeconfigContext) -> str | None:
    """Return None: every cluster is reachable."""
    return None


@dataclass(frozen=True, kw_only=True)
class PluginFiles:
    """The plugin's program, the kubeconfig of the control plane, the program's folder and the plugin's log."""

    program: Path
    kubeconfig: Path
    folder: Path
    log: Path


class KubernetesPlugin(ResourceProviderServicer):
    """Serves the real plugin to the engine.

    Objects go to the API server of `files.kubeconfig`, whatever kubeconfig the program sets: a rehearsal never reaches
    a real cluster. `reach` decides whether the cluster of the program's kubeconfig is reachable. Charts come from
    `charts`; `faults` are injected into the operations.
    """

    def __init__(
        self, files: PluginFiles, charts: ChartMirror, faults: Faults, reach: Reach = everywhere
    ) -> None:
        self._files = files
        self._charts = charts
        self._faults = faults
        self._reach = reach
        self._lock = threading.Lock()
        self._instances: dict[str, _Instance] = {}
        for method in _FORWARDED:
            setattr(self, method, self._forwarding(method))

    def close(self) -> None:
        """End the plugin; operations that run end as they do when the engine is interrupted."""
        with self._lock:
            instances = list(self._instances.values())
            self._instances.clear()
        for instance in instances:
            instance.cancel()
        for instance in instances:
            instance.end()

    def Handshake(
        self, request: provider_pb2.ProviderHandshakeRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ProviderHandshakeResponse:
        """Refuse it like the plugin, which gets the engine's address when it starts."""
        raise NotImplementedError

    def Attach(self, request: plugin_pb2.PluginAttach, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Start the plugin for a new instance."""
        instance = _Instance(self._files, engine=request.address)
        with self._lock:
            self._instances[context.peer()] = instance
        return empty_pb2.Empty()

    def Configure(
        self, request: provider_pb2.ConfigureRequest, context: grpc.ServicerContext
    ) -> provider_pb2.ConfigureResponse:
        """Lead the instance to the control plane, or to the refusal that its cluster would answer with."""
        _require_answer(self._files.kubeconfig)
        variables = request.variables
        settings = {
            name: variables.pop(f"{_SETTING}{name}", "") for name in ("kubeconfig", "context", "cluster")
        }
        connection = read_connection(settings)
        reason = self._reach(connection) if connection else None
        kubeconfig = str(self._files.kubeconfig)
        if reason is not None:
            kubeconfig = self._instance(context).refusing(reason)
        variables[f"{_SETTING}kubeconfig"] = kubeconfig
        return self._forward("Configure", request, context)

    def Check(
        self, request: provider_pb2.CheckRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CheckResponse:
        """Let the plugin read the chart of a release from the mirror."""
        try:
            address = self._charts.lend(request.type, request.news)
        except RehearsalError as error:
            failure = provider_pb2.CheckFailure(property="chart", reason=str(error))
            return provider_pb2.CheckResponse(failures=[failure])
        checked: provider_pb2.CheckResponse = self._forward("Check", request, context)
        give_back(checked.inputs, address)
        return checked

    def Create(
        self, request: provider_pb2.CreateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.CreateResponse:
        """Inject faults into a create."""
        if not request.preview:
            self._faults.before_create(request.urn)
        address = self._charts.lend(request.type, request.properties)
        created: provider_pb2.CreateResponse = self._forward("Create", request, context)
        give_back(created.properties, address)
        if not request.preview:
            self._faults.after_create(request.urn)
        return created

    def Update(
        self, request: provider_pb2.UpdateRequest, context: grpc.ServicerContext
    ) -> provider_pb2.UpdateResponse:
        """Let the plugin read the chart of a release from the mirror."""
        address = self._charts.lend(request.type, request.news)
        updated: provider_pb2.UpdateResponse = self._forward("Update", request, context)
        give_back(updated.properties, address)
        return updated

    def Delete(self, request: provider_pb2.DeleteRequest, context: grpc.ServicerContext) -> empty_pb2.Empty:
        """Inject faults into a delete, which waits less long than against a real cluster."""
        request.timeout = min(request.timeout or LONGEST_DELETE_SECONDS, LONGEST_DELETE_SECONDS)
        deleted: empty_pb2.Empty = self._forward("Delete", request, context)
        self._faults.after_delete(request.urn)
        return deleted

    def _forwarding(self, method: str) -> Callable[[Any, grpc.ServicerContext], Any]:
        return lambda request, context: self._forward(method, request, context)

    def _forward(self, method: str, request: Any, context: grpc.ServicerContext) -> Any:
        return self._instance(context).call(method, request)

    def _instance(self, context: grpc.ServicerContext) -> "_Instance":
        with self._lock:
            return self._instances[context.peer()]


class _Instance:
    """One process of the plugin, which ends with the engine that it knows by its address."""

    def __init__(self, files: PluginFiles, *, engine: str) -> None:
        files.log.parent.mkdir(parents=True, exist_ok=True)
        with files.log.open("ab") as log:
            self._process = subprocess.Popen(
                [files.program, engine],
                cwd=files.folder,
                env=_environment(os.environ, home=files.kubeconfig.parent / "helm"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                # Ctrl-C reaches the engine, which cancels the operations.
                start_new_session=True,
            )
        port = self._process.stdout.readline().strip() if self._process.stdout else b""
        if not port:
            raise RehearsalError(f"{files.program} did not start; its log is {files.log}")
        options = (*MESSAGE_SIZES, ("grpc.enable_http_proxy", 0))
        self._channel = grpc.insecure_channel(f"127.0.0.1:{port.decode()}", options=options)
        self._stub = ResourceProviderStub(self._channel)
        self._refusal: _Refusal | None = None
        self._calls = 0
        self._idle = threading.Condition()

    def call(self, method: str, request: Any) -> Any:
        """Call the plugin."""
        with self._idle:
            self._calls += 1
        try:
            return getattr(self._stub, method)(request)
        finally:
            with self._idle:
                self._calls -= 1
                self._idle.notify_all()

    def refusing(self, reason: str) -> str:
        """Return the kubeconfig of an API server that refuses every request for this reason."""
        self._refusal = _Refusal(reason)
        return self._refusal.kubeconfig

    def cancel(self) -> None:
        """Cancel the operations that run."""
        if self._calls:
            self._stub.Cancel.future(empty_pb2.Empty())

    def end(self) -> None:
        """Wait for canceled operations, so that helm records their end, and stop the process."""
        with self._idle:
            self._idle.wait_for(lambda: not self._calls, timeout=_END_SECONDS)
        self._channel.close()
        self._process.kill()
        self._process.wait()
        if self._process.stdout:
            self._process.stdout.close()
        if self._refusal:
            self._refusal.close()


class _Refusal(ThreadingHTTPServer):
    """Stands for an API server that does not exist or does not know the caller."""

    daemon_threads = True

    def __init__(self, reason: str) -> None:
        super().__init__(("127.0.0.1", 0), _Refusing)
        self.reason = reason.encode()
        threading.Thread(target=self.serve_forever, daemon=True, name="unreachable cluster").start()

    @property
    def kubeconfig(self) -> str:
        """The kubeconfig of this server, as JSON."""
        cluster = {"server": f"http://127.0.0.1:{self.server_port}"}
        return dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "refused",
                "contexts": [{"name": "refused", "context": {"cluster": "refused", "user": "refused"}}],
                "clusters": [{"name": "refused", "cluster": cluster}],
                "users": [{"name": "refused", "user": {}}],
            }
        )

    def close(self) -> None:
        """Stop the server."""
        self.shutdown()
        self.server_close()


class _Refusing(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Refuse."""
        reason = cast("_Refusal", self.server).reason
        # The client takes over the text of no other code.
        self.send_response(HTTPStatus.FORBIDDEN)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(reason)))
        self.end_headers()
        self.wfile.write(reason)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


def _environment(base: Mapping[str, str], *, home: Path) -> dict[str, str]:
    # Plugins, repositories and defaults of the user must not affect a release.
    inherited = {name: value for name, value in base.items() if not name.startswith("HELM_")}
    return {
        **inherited,
        **{f"HELM_{name.upper()}_HOME": str(home / name) for name in ("cache", "config", "data")},
    }


def _require_answer(kubeconfig: Path) -> None:
    """Raise RehearsalError if the control plane does not answer: the plugin would plan without it."""
    stack = kubeconfig.parent.name
    if not kubeconfig.is_file():
        raise RehearsalError(
            f"stack {stack} has no control plane: {kubeconfig} does not exist; run `make up`"
        )
    client = KubeClient.from_kubeconfig(kubeconfig)
    try:
        client.server_version()
    except Unreachable as error:
        raise RehearsalError(
            f"the control plane of stack {stack} does not answer at {error.server}; start it with `make up`"
        ) from error
    finally:
        client.close()


def find_created(operation: PendingOperation, kubeconfig: Path) -> str | None:
    """Return the id of the object or release that an interrupted create made, None if it made none."""
    client = KubeClient.from_kubeconfig(kubeconfig)
    try:
        if operation.type == RELEASE:
            return _release_id(client, operation.inputs)
        return _object_id(client, operation.inputs)
    finally:
        client.close()


def _release_id(client: KubeClient, inputs: Json) -> str | None:
    name, namespace = inputs.get("name"), inputs.get("namespace")
    if not isinstance(name, str) or not isinstance(namespace, str):
        return None
    selector = f"owner=helm,name={name}"
    return (
        f"{namespace}/{name}"
        if client.list("v1", "Secret", namespace=namespace, label_selector=selector)
        else None
    )


def _object_id(client: KubeClient, inputs: Json) -> str | None:
    metadata = mapping(inputs.get("metadata"))
    name, namespace = metadata.get("name"), str(metadata.get("namespace") or "default")
    if not isinstance(name, str):
        return None
    api_version, kind = str(inputs.get("apiVersion")), str(inputs.get("kind"))
    try:
        live = client.get(api_version, kind, name, namespace)
    except NoSuchKind:
        return None
    found = mapping((live or {}).get("metadata"))
    managers = [mapping(each).get("manager") for each in sequence(found.get("managedFields"))]
    if inputs.get(_MANAGER) not in managers:
        return None
    return f"{found['namespace']}/{name}" if found.get("namespace") else name


_MANAGER: Final = "__fieldManager"
