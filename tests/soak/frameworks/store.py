"""Training on a store that judges requests: Versity's S3 gateway has an account for each namespace, and the stack's policy.

`make frameworks` builds and runs it. Its accounts are its own: the policy that AWS attaches to a role is that of the bucket
here, with the role as principal.
"""

import json
import os
import signal
import subprocess
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
import pytest
from botocore.exceptions import ClientError

from pulumi_holdfast.aws.checkpoints import prefix_access
from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.control_plane.processes import free_ports
from pulumi_holdfast.rehearsal.tools.build import Go
from pulumi_holdfast.rehearsal.tools.catalog import BUILD_FLAGS, LINK_FLAGS
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.json_objects import obj, objects
from tests.support.training_program import TRAINING, Run
from tests.support.waiting import wait_until

_MODULE: Final = Path(__file__).parent / "versitygw"
_PACKAGE: Final = "github.com/versity/versitygw/cmd/versitygw"
_BUCKET: Final = "checkpoints"
_NAMESPACES: Final = ("vision", "tabular")
_ADMINISTRATOR: Final = "administrator"
_SETTINGS: Final = {
    "STEPS": "60",
    "STEPS_BETWEEN_CHECKPOINTS": "10",
    "SECONDS_PER_STEP": "0.05",
    "RUN": "run",
}


@dataclass(frozen=True, kw_only=True)
class Store:
    """A running store with a bucket."""

    endpoint: str

    def environment(self, account: str) -> dict[str, str]:
        """What a pod with the account's identity finds."""
        return {
            "AWS_ENDPOINT_URL_S3": self.endpoint,
            "AWS_ACCESS_KEY_ID": account,
            "AWS_SECRET_ACCESS_KEY": _secret(account),
            "AWS_DEFAULT_REGION": "us-east-1",
        }

    def client(self, account: str) -> Any:
        """S3 as an account."""
        return boto3.client(  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # boto3 has no types
            "s3",
            endpoint_url=self.endpoint,
            aws_access_key_id=account,
            aws_secret_access_key=_secret(account),
            region_name="us-east-1",
        )

    def answers(self) -> bool:
        try:
            self.client(_ADMINISTRATOR).list_buckets()
        except Exception:  # noqa: BLE001 - it starts
            return False
        return True


def _secret(account: str) -> str:
    return f"secret-of-{account}"


def _policy() -> str:
    """The permissions of all namespaces; the store knows one account, and no key of KMS."""
    statements: list[JsonValue] = []
    for namespace in _NAMESPACES:
        document = obj(
            json.loads(prefix_access(bucket_arn=f"arn:aws:s3:::{_BUCKET}", prefix=namespace, key_arn=None))
        )
        for each in objects(document["Statement"]):
            conditions = {
                key: value for key, value in obj(each.get("Condition")).items() if key != "StringEquals"
            }
            kept: Json = {key: value for key, value in each.items() if key != "Condition"}
            sid = f"{namespace}{each['Sid']}"
            statements.append(
                {
                    **kept,
                    "Sid": sid,
                    "Principal": [namespace],
                    **({"Condition": conditions} if conditions else {}),
                }
            )
    return json.dumps({"Version": "2012-10-17", "Statement": statements})


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Generator[Store]:
    """The store, with a versioned bucket and an account for each namespace."""
    program = CHECKOUT / ".tools" / "bin" / "versitygw"
    Go().run(
        "versitygw",
        ["build", *BUILD_FLAGS, f"-ldflags={' '.join(LINK_FLAGS)}", "-o", str(program), _PACKAGE],
        _MODULE,
    )
    folder = tmp_path_factory.mktemp("store")
    for each in ("data", "versions", "accounts"):
        (folder / each).mkdir()
    accounts = {
        name: {
            "access": name,
            "secret": _secret(name),
            "role": "user",
            "userID": 0,
            "groupID": 0,
            "projectID": 0,
        }
        for name in _NAMESPACES
    }
    (folder / "accounts" / "users.json").write_text(json.dumps({"accessAccounts": accounts}))
    (port,) = free_ports(1)
    command = [
        *(str(program), "--port", f"127.0.0.1:{port}", "--iam-dir", str(folder / "accounts")),
        *("posix", "--versioning-dir", str(folder / "versions"), str(folder / "data")),
    ]
    root = {"ROOT_ACCESS_KEY": _ADMINISTRATOR, "ROOT_SECRET_KEY": _secret(_ADMINISTRATOR)}
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(command, env={**os.environ, **root}, stdout=log, stderr=log) as server,
    ):
        found = Store(endpoint=f"http://127.0.0.1:{port}")
        try:
            wait_until(lambda: server.poll() is not None or found.answers(), "the store answers")
            assert server.poll() is None, (folder / "log").read_text()
            administrator = found.client(_ADMINISTRATOR)
            administrator.create_bucket(Bucket=_BUCKET)
            administrator.put_bucket_versioning(Bucket=_BUCKET, VersioningConfiguration={"Status": "Enabled"})
            administrator.put_bucket_policy(Bucket=_BUCKET, Policy=_policy())
            yield found
        finally:
            server.terminate()


def test_a_training_that_is_killed_continues_from_its_objects(store: Store, tmp_path: Path) -> None:
    plain = Run(
        program=TRAINING / "train.py",
        environment={**_SETTINGS, "SECONDS_PER_STEP": "0", "CHECKPOINT_URI": tmp_path.as_uri()},
    ).attempt()
    environment = {**_SETTINGS, **store.environment("vision"), "CHECKPOINT_URI": f"s3://{_BUCKET}/vision"}
    training = Run(program=TRAINING / "train.py", environment=environment)
    killed = training.attempt(end=signal.SIGKILL, after=25)
    last = training.attempt()
    assert (killed.began, last.began) == (0, 20), last.said
    assert last.weights == plain.weights
    # A deleted checkpoint is a version that the bucket's lifecycle removes, not the job.
    versions = store.client(_ADMINISTRATOR).list_object_versions(Bucket=_BUCKET, Prefix="vision/run/")
    assert len(versions["Versions"]) == 6
    assert len(versions["DeleteMarkers"]) == 3


def test_a_namespace_reads_writes_and_lists_nothing_of_another_one(store: Store, tmp_path: Path) -> None:
    vision, tabular = store.client("vision"), store.client("tabular")
    vision.put_object(Bucket=_BUCKET, Key="vision/other/a", Body=b"{}")
    for refused in (
        lambda: tabular.get_object(Bucket=_BUCKET, Key="vision/other/a"),
        lambda: tabular.put_object(Bucket=_BUCKET, Key="vision/other/a", Body=b""),
        lambda: tabular.delete_object(Bucket=_BUCKET, Key="vision/other/a"),
        lambda: tabular.list_objects_v2(Bucket=_BUCKET, Prefix="vision/other/"),
        lambda: tabular.list_objects_v2(Bucket=_BUCKET, Prefix="vision"),
    ):
        with pytest.raises(ClientError, match="AccessDenied"):
            refused()
    environment = {**_SETTINGS, **store.environment("tabular"), "CHECKPOINT_URI": f"s3://{_BUCKET}/vision"}
    attempt = Run(program=TRAINING / "train.py", environment=environment).attempt()
    assert (attempt.code, attempt.steps) == (1, ())
    assert "AccessDenied" in attempt.said
    assert tabular.list_objects_v2(Bucket=_BUCKET, Prefix="tabular/")["KeyCount"] == 0
