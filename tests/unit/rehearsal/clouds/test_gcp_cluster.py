"""Simulated GKE clusters are created, changed and deleted like real ones."""

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.values import Properties, Value, to_struct
from tests.support.clusters.provider_calls import Engine, Provider, invoke

_CLUSTER = "gcp:container/cluster:Cluster"
_ID = "projects/rehearsal/locations/europe-west4/clusters/train"
_KEY = "projects/keys/locations/europe-west4/keyRings/ring/cryptoKeys/gke"


def _inputs(**overrides: Value) -> dict[str, Value]:
    place = {"name": "train", "location": "europe-west4"}
    return {**place, "minMasterVersion": "1.36", "deletionProtection": False, **overrides}


@pytest.fixture
def engine(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type=_CLUSTER)


def _made(engine: Engine, **overrides: Value) -> Json:
    made, outputs = engine.create(_inputs(**overrides))
    assert made == _ID
    return outputs  # pyright: ignore[reportReturnType] - nothing in it is unknown


def test_nodes_of_an_account_that_is_not_there_are_refused(gcp: Provider, engine: Engine) -> None:
    nodes: Value = {"serviceAccount": "nodes-account@rehearsal.iam.gserviceaccount.com"}
    engine.refuses_create(_inputs(nodeConfig=nodes), "does not exist., badRequest")
    Engine(provider=gcp, type="gcp:serviceaccount/account:Account").create({"accountId": "nodes-account"})
    _made(engine, nodeConfig=nodes)


def test_a_key_that_gkes_agent_may_not_use_is_refused(gcp: Provider, engine: Engine) -> None:
    encrypted: Value = {"state": "ENCRYPTED", "keyName": _KEY}
    denied = "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource"
    engine.refuses_create(_inputs(databaseEncryption=encrypted), denied)
    agent = "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com"
    role = "roles/cloudkms.cryptoKeyEncrypterDecrypter"
    grant = Engine(provider=gcp, type="gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember")
    grant.create({"cryptoKeyId": _KEY, "role": role, "member": agent})
    _made(engine, databaseEncryption=encrypted)


@pytest.fixture
def configured(gcp: Provider) -> Provider:
    arguments = to_struct({"project": "ml-dev", "region": "europe-west4"})
    gcp.Configure(provider_pb2.ConfigureRequest(args=arguments))
    return gcp


@pytest.mark.parametrize(
    ("question", "arguments", "who"),
    [
        ("gcp:compute/getMachineTypes:getMachineTypes", {"zone": "us-central1-a"}, "us-central1-a are not"),
        (
            "gcp:container/getEngineVersions:getEngineVersions",
            {"location": "us-central1"},
            "us-central1 are not",
        ),
    ],
)
def test_real_data_is_not_simulated(
    configured: Provider, question: str, arguments: Properties, who: str
) -> None:
    with pytest.raises(grpc.RpcError, match="are not simulated") as error:
        invoke(configured, question, arguments)
    assert who in str(error.value)
