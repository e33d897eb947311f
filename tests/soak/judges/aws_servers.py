"""The account in which the real provider of AWS creates a stack: moto, and an echo of EKS, behind a server that judges.

The server reads each request by botocore's models before it passes it on.
"""

import json
import re
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE
from typing import Final, cast
from urllib.parse import parse_qsl, quote, urlsplit

from holdfast.simulator.errors import RehearsalError
from tests.soak.judges.aws_requests import Call, Sent, Service, Values
from tests.support.background import Silent, serving

#: The Python of moto's environment, which `make judges` installs.
PYTHON: Final = Path(__file__).parents[3] / ".tools/moto/bin/python"
#: The beginning of the paths of S3 Control, which signs as S3 and has the account in the name of its host.
_CONTROL: Final = "/v20180820/"
#: moto has no add-ons, access entries and pod identities, so EKS is an echo as a whole.
ECHOED: Final = "eks"
_PROVIDERS: Final = ("/identity-provider-configs/associate", "/identity-provider-configs/describe")
_OWN_NAMES: Final = ("name", "principalArn", "policyArn")
_ACCOUNT: Final = "arn:aws:eks:us-west-2:123456789012"
_SIGNED: Final = re.compile(r"Credential=[^/]+/\d+/[^/]+/([^/]+)/")
_SECONDS: Final = 180.0
_MOTO: Final = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
#: Headers that belong to a single connection.
_HOP: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "server"})


@dataclass(kw_only=True)
class Judged:
    """What was sent: the requests of each service, and what the models say against them."""

    requests: Counter[str] = field(default_factory=Counter[str])
    operations: set[str] = field(default_factory=set[str])
    wrong: list[str] = field(default_factory=list[str])


class EksEcho:
    """An EKS that creates everything at once and describes what it was given.

    `make_group` creates the security group of a cluster.
    """

    def __init__(self, make_group: Callable[[], str]) -> None:
        self._made: dict[str, Values] = {}
        self._make_group = make_group

    def answer(self, sent: Sent, call: Call) -> tuple[int, Values]:
        """Return the status and the body of a response."""
        path, service = sent.path.rstrip("/"), Service.of(ECHOED)
        output = service.members(service.output(call.operation))
        kinds = [name for name, (_, shape) in output.items() if shape["type"] == "structure"]
        match sent.method:
            case "POST" if path.endswith(_PROVIDERS):
                return self._of_identity_provider(path.rpartition("/")[0], call)
            case "POST" if kinds and call.operation.startswith(("Create", "Associate")):
                made = self._created(path, kinds[0], call)
                return 200, {**call.parameters, kinds[0]: made}
            case "GET" if call.operation.startswith("List"):
                title = next(name for name, (_, shape) in output.items() if shape["type"] in ("list", "map"))
                inside = [one for key, one in self._made.items() if key.rpartition("/")[0] == path]
                return 200, {**call.parameters, title: inside if title != "tags" else {}}
            case "GET" | "DELETE" if path in self._made:
                found = self._made[path] if sent.method == "GET" else self._made.pop(path)
                return 200, {kinds[0]: found} if kinds else {}
            case _:
                return 404, {"message": f"{call.operation} finds nothing at {path}"}

    def _of_identity_provider(self, path: str, call: Call) -> tuple[int, Values]:
        """Identity providers have requests of another form than all other resources."""
        if "oidc" in call.parameters:
            config = cast("Values", call.parameters["oidc"])
            shown = {name: call.parameters.get(name) for name in ("clusterName", "tags")}
            self._made[f"{path}/{config['identityProviderConfigName']}"] = {
                **config,
                **shown,
                "status": "ACTIVE",
            }
            return 200, {
                "update": {"id": "0", "status": "Successful", "type": "AssociateIdentityProviderConfig"}
            }
        sought = cast("Values", call.parameters["identityProviderConfig"])
        found = self._made.get(f"{path}/{sought['name']}")
        return (
            (200, {"identityProviderConfig": {"oidc": found}}) if found else (404, {"message": "no provider"})
        )

    def _created(self, path: str, kind: str, call: Call) -> Values:
        number = f"a-{len(self._made):017x}"
        names = [str(call.parameters[key]) for key in (f"{kind}Name", *_OWN_NAMES) if key in call.parameters]
        # The names of parents are in the path.
        name = next((one for one in names if f"/{quote(one, safe='')}" not in path), number)
        made: Values = {
            **call.parameters,
            "status": "ACTIVE",
            "createdAt": 0,
            "modifiedAt": 0,
            "associationId": number,
            "arn": f"{_ACCOUNT}:{kind}/{name}",
        }
        made |= {f"{kind}Arn": made["arn"]}
        if kind == "cluster":
            network = cast("Values", call.parameters["resourcesVpcConfig"])
            made |= {
                "endpoint": "https://0.eks.amazonaws.com",
                "certificateAuthority": {"data": "Q0E="},
                "identity": {"oidc": {"issuer": "https://oidc.eks.us-west-2.amazonaws.com/id/0"}},
                "resourcesVpcConfig": {**network, "clusterSecurityGroupId": self._make_group()},
            }
        self._made[f"{path}/{quote(name, safe='')}"] = made
        return made


class _Server(ThreadingHTTPServer):
    """Judges requests, and passes them on to moto or to the echo."""

    daemon_threads = True

    def __init__(self, moto: int) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.moto = moto
        self.judged = Judged()
        self.echo = EksEcho(self._security_group)
        self.lock = threading.Lock()

    def answer(self, sent: Sent, target: str) -> tuple[int, Mapping[str, str], bytes]:
        """Return the status, the headers and the body of a response."""
        with self.lock:
            call = self._judge(sent)
            if sent.service == ECHOED and call is not None:
                status, body = self.echo.answer(sent, call)
                missing = {} if status == 200 else {"x-amzn-ErrorType": "ResourceNotFoundException"}
                return status, {"Content-Type": "application/json", **missing}, json.dumps(body).encode()
        return self._of_moto(sent.method, target, sent.body, sent.headers)

    def _of_moto(
        self, method: str, target: str, body: bytes, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        connection = HTTPConnection("127.0.0.1", self.moto, timeout=_SECONDS)
        connection.request(method, target, body=body or None, headers=dict(headers))
        response = connection.getresponse()
        given = {name: value for name, value in response.getheaders() if name.lower() not in _HOP}
        return response.status, given, response.read()

    def _security_group(self) -> str:
        """Create the security group that EKS creates for a cluster."""
        body = b"Action=CreateSecurityGroup&Version=2016-11-15&GroupName=eks&GroupDescription=eks"
        headers = {
            "Authorization": "AWS4-HMAC-SHA256 Credential=none/20260101/us-west-2/ec2/aws4_request",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        _, _, made = self._of_moto("POST", "/", body, headers)
        return made.decode().partition("<groupId>")[2].partition("<")[0]

    def _judge(self, sent: Sent) -> Call | None:
        self.judged.requests[sent.service] += 1
        try:
            call = Service.of(sent.service).read(sent)
        except LookupError as unknown:
            self.judged.wrong.append(str(unknown.args[0]))
            return None
        self.judged.operations.add(f"{sent.service} {call.operation}")
        self.judged.wrong += [f"{sent.service} {one}" for one in call.wrong]
        return call


class _Handler(Silent, BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        target = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        signed = _SIGNED.search(headers.get("authorization", ""))
        service = signed[1] if signed else ""
        sent = Sent(
            service="s3control" if target.path.startswith(_CONTROL) else service,
            method=self.command,
            path=target.path,
            query=dict(parse_qsl(target.query, keep_blank_values=True)),
            headers=headers,
            body=body,
        )
        status, given, content = cast("_Server", self.server).answer(sent, f"{target.path}?{target.query}")
        self.send_response(status)
        for name, value in given.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = _answer  # noqa: N815 - the names of the class


@contextmanager
def account(folder: Path) -> Generator[tuple[str, Judged]]:
    """Serve an empty account for the length of the block. Yields its address and what is judged."""
    log = folder / "moto.log"
    with (
        log.open("wb") as errors,
        # It ends when its input does, and so with this process.
        subprocess.Popen(
            [PYTHON, "-c", _MOTO],
            stdin=PIPE,
            stdout=PIPE,
            stderr=errors,
            text=True,
            env={"MOTO_IAM_LOAD_MANAGED_POLICIES": "true"},
        ) as moto,
    ):
        port = moto.stdout.readline() if moto.stdout else ""
        if not port:
            raise RehearsalError(f"moto does not start:\n{log.read_text(encoding='utf-8')}")
        server = _Server(int(port))
        try:
            with serving(server):
                yield f"http://127.0.0.1:{server.server_port}", server.judged
        finally:
            moto.terminate()
