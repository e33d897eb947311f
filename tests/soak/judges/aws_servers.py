"""The account in which the real provider of AWS creates a stack: moto, and an echo of EKS, behind a server that judges.

The server reads each request by botocore's models before it passes it on.
"""

import json
import re
import subprocess
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from subprocess import PIPE
from typing import Final, cast
from urllib.parse import quote

from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.judges.applies import Target
from tests.soak.judges.aws_requests import Service
from tests.soak.judges.plans import Document
from tests.soak.judges.server import CLOUDS, Account, Call, Response, Sent, Values
from tests.support.background import serving
from tests.support.builders.aws_stacks import SUBNETS, VPC

#: The Python of moto's environment.
PYTHON: Final = CLOUDS / "bin/python"
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
#: moto answers what it lacks as a failure of the server, which the provider would repeat for minutes.
_SETTINGS: Final = {"s3_use_path_style": True, "skip_requesting_account_id": False, "max_retries": 2}
#: The network that a stack can bring: it is there before.
_BESIDE: Final[Mapping[str, Mapping[str, Document]]] = {
    "aws_vpc": {"brought": {"cidr_block": "10.0.0.0/16"}},
    "aws_subnet": {
        f"brought{number}": {
            "vpc_id": "${aws_vpc.brought.id}",
            "cidr_block": f"10.0.{number}.0/24",
            "availability_zone": f"us-west-2{'ab'[number]}",
        }
        for number in range(len(SUBNETS))
    },
}
_KNOWN: Final[Mapping[str, str]] = {
    VPC: "${aws_vpc.brought.id}",
    **{name: f"${{aws_subnet.brought{number}.id}}" for number, name in enumerate(SUBNETS)},
}
#: Headers that belong to a single connection.
_HOP: Final = frozenset({"content-length", "transfer-encoding", "connection", "date", "server"})


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


class AwsAccount(Account):
    """An empty account of AWS: moto at a port, and an echo of EKS."""

    def __init__(self, moto: int) -> None:
        super().__init__()
        self._moto = moto
        self._echo = EksEcho(self._security_group)

    def target(self) -> Target:
        # S3 Control puts the account before the host's name, which only a proxy resolves.
        environment = {"AWS_ENDPOINT_URL": self.url, "HTTP_PROXY": self.url}
        return Target(settings=_SETTINGS, environment=environment, beside=_BESIDE, known=_KNOWN)

    def service(self, path: str, headers: Mapping[str, str]) -> tuple[str, str]:
        signed = _SIGNED.search(headers.get("authorization", ""))
        return ("s3control" if path.startswith(_CONTROL) else signed[1] if signed else ""), path

    def part(self, service: str) -> str:
        return "the echo of EKS" if service == ECHOED else "moto"

    def read(self, sent: Sent) -> Call:
        return Service.of(sent.service).read(sent)

    def respond(self, sent: Sent, call: Call | None, target: str) -> Response:
        if sent.service != ECHOED or call is None:
            return self._of_moto(sent.method, target, sent.body, sent.headers)
        with self.lock:
            status, body = self._echo.answer(sent, call)
        missing = {} if status == 200 else {"x-amzn-ErrorType": "ResourceNotFoundException"}
        return status, {"Content-Type": "application/json", **missing}, json.dumps(body).encode()

    def _of_moto(self, method: str, target: str, body: bytes, headers: Mapping[str, str]) -> Response:
        connection = HTTPConnection("127.0.0.1", self._moto, timeout=_SECONDS)
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


@contextmanager
def account(folder: Path) -> Generator[Account]:
    """Serve an empty account for the length of the block."""
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
        made = AwsAccount(int(port))
        try:
            with serving(made):
                yield made
        finally:
            moto.terminate()
