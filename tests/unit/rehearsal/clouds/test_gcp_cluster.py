"""Simulated GKE clusters are created, changed and deleted like real ones."""

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.values import Properties, Value, to_struct
from tests.support.clusters.provider_calls import Engine, Provider, invoke
from tests.support.inputs import mapping, text

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


def test_a_cluster_has_its_name_its_addresses_and_a_growing_version(engine: Engine, gcp: Provider) -> None:
    made = _made(engine)
    name = text(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "endpoint")
    assert name.endswith(".europe-west4.gke.goog")
    assert text(made, "endpoint") == text(made, "privateClusterConfig", "publicEndpoint")
    assert text(made, "masterAuth", "clusterCaCertificate")
    assert text(made, "masterVersion").startswith("1.36.")
    newer = engine.update(_ID, _inputs(minMasterVersion="1.37"))
    assert str(newer["masterVersion"]).startswith("1.37.")
    older = engine.update(_ID, _inputs(minMasterVersion="1.36"))
    assert older["masterVersion"] == newer["masterVersion"]
    other = Engine(provider=gcp, type=_CLUSTER, name="two")
    other.refuses_create(_inputs(), "googleapi: Error 409: Already exists: train., alreadyExists")
    made, _ = other.create(_inputs(location="europe-west1"))
    assert made.endswith("/locations/europe-west1/clusters/train")


def test_clients_get_the_address_that_is_switched_on(engine: Engine) -> None:
    private = {"enablePrivateNodes": True, "enablePrivateEndpoint": True}
    made = _made(engine, privateClusterConfig=private)
    only = text(made, "privateClusterConfig", "privateEndpoint")
    assert text(made, "endpoint") == only
    engine.delete(_ID)
    made = _made(engine, controlPlaneEndpointsConfig={"ipEndpointsConfig": {"enabled": False}})
    assert text(made, "endpoint") == ""
    assert "publicEndpoint" not in mapping(made, "privateClusterConfig")


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


@pytest.mark.parametrize("protection", [{}, {"deletionProtection": True}])
def test_a_cluster_is_protected_by_default(engine: Engine, protection: dict[str, Value]) -> None:
    inputs = {name: value for name, value in _inputs().items() if name != "deletionProtection"}
    engine.create({**inputs, **protection})
    engine.refuses_delete(_ID, "Cannot destroy cluster because deletion_protection is set to true.")
    engine.update(_ID, _inputs())
    engine.removes(_ID)


@pytest.fixture
def configured(gcp: Provider) -> Provider:
    arguments = to_struct({"project": "ml-dev", "region": "europe-west4"})
    gcp.Configure(provider_pb2.ConfigureRequest(args=arguments))
    return gcp


def test_project_zones_and_agent_are_those_of_the_provider(gcp: Provider, configured: Provider) -> None:
    found = invoke(gcp, "gcp:organizations/getProject:getProject", {"projectId": "ml-prod"})
    assert found["projectId"] == "ml-prod"
    assert found["number"] == "123456789012"
    assert invoke(configured, "gcp:organizations/getProject:getProject", {})["projectId"] == "ml-dev"
    question = "gcp:compute/getZones:getZones"
    assert invoke(configured, question, {"region": "us-central1"})["names"] == [
        "us-central1-a",
        "us-central1-b",
        "us-central1-c",
        "us-central1-f",
    ]
    assert invoke(configured, question, {})["region"] == "europe-west4"
    found = invoke(configured, "gcp:storage/getProjectServiceAccount:getProjectServiceAccount", {})
    agent = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
    assert (found["emailAddress"], found["member"]) == (agent, f"serviceAccount:{agent}")
    assert found["project"] == "ml-dev"


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
