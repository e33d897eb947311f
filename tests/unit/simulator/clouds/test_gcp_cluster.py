"""Simulated GKE clusters are created, changed and deleted like real ones."""

from collections.abc import Mapping

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.pulumi.values import Properties, Value, from_struct, to_struct
from tests.support.clusters.provider_calls import Engine, Provider
from tests.support.inputs import mapping, text

_CLUSTER = "gcp:container/cluster:Cluster"
_ID = "projects/rehearsal/locations/europe-west4/clusters/train"
_KEY = "projects/keys/locations/europe-west4/keyRings/ring/cryptoKeys/gke"


def _inputs(**overrides: Value) -> dict[str, Value]:
    return {
        "name": "train",
        "location": "europe-west4",
        "minMasterVersion": "1.36",
        "deletionProtection": False,
        **overrides,
    }


@pytest.fixture
def engine(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type=_CLUSTER)


def _made(engine: Engine, **overrides: Value) -> Json:
    made, outputs = engine.create(_inputs(**overrides))
    assert made == _ID, "pools and grants name it so"
    return outputs  # pyright: ignore[reportReturnType] - nothing in it is unknown


def test_a_cluster_has_a_name_that_clients_find_and_an_authority_for_its_addresses(engine: Engine) -> None:
    made = _made(engine)
    name = text(made, "controlPlaneEndpointsConfig", "dnsEndpointConfig", "endpoint")
    assert name.endswith(".europe-west4.gke.goog"), "every cluster has one"
    assert text(made, "endpoint") == text(made, "privateClusterConfig", "publicEndpoint"), "public address"
    assert text(made, "masterAuth", "clusterCaCertificate"), "it signs the certificate of the addresses"
    assert text(made, "masterVersion").startswith("1.36."), "the version that was asked for, and its patch"


def test_with_a_private_endpoint_alone_clients_are_told_the_private_address(engine: Engine) -> None:
    made = _made(engine, privateClusterConfig={"enablePrivateNodes": True, "enablePrivateEndpoint": True})
    assert text(made, "endpoint") == text(made, "privateClusterConfig", "privateEndpoint"), "no public one"


def test_without_addresses_clients_are_told_none(engine: Engine) -> None:
    made = _made(engine, controlPlaneEndpointsConfig={"ipEndpointsConfig": {"enabled": False}})
    assert text(made, "endpoint") == "", "there is no address"
    assert "publicEndpoint" not in mapping(made, "privateClusterConfig"), "nor a public one"


def test_ranges_that_the_subnetwork_does_not_have_are_refused(gcp: Provider, engine: Engine) -> None:
    subnetwork, _ = Engine(provider=gcp, type="gcp:compute/subnetwork:Subnetwork").create(
        {
            "name": "nodes",
            "network": "train",
            "region": "europe-west4",
            "ipCidrRange": "10.40.0.0/20",
            "secondaryIpRanges": [
                {"rangeName": "gke-pods", "ipCidrRange": "10.44.0.0/14"},
                {"rangeName": "gke-services", "ipCidrRange": "10.40.16.0/20"},
            ],
        }
    )

    def policy(pods: str) -> Value:
        return {"clusterSecondaryRangeName": pods, "servicesSecondaryRangeName": "gke-services"}

    engine.refuses_create(
        _inputs(network="train", subnetwork=subnetwork, ipAllocationPolicy=policy("pods")),
        'googleapi: Error 400: Pod secondary range "pods" not found in network',
    )
    engine.refuses_create(
        _inputs(ipAllocationPolicy=policy("gke-services")),
        "should not be the same as service secondary range name",
    )
    _made(engine, network="train", subnetwork=subnetwork, ipAllocationPolicy=policy("gke-pods"))


def test_nodes_of_an_account_that_is_not_there_are_refused(gcp: Provider, engine: Engine) -> None:
    nodes: Value = {"serviceAccount": "nodes-account@rehearsal.iam.gserviceaccount.com"}
    engine.refuses_create(_inputs(nodeConfig=nodes), "does not exist., badRequest")
    Engine(provider=gcp, type="gcp:serviceaccount/account:Account").create({"accountId": "nodes-account"})
    _made(engine, nodeConfig=nodes)


def test_a_key_that_gkes_agent_may_not_use_is_refused(gcp: Provider, engine: Engine) -> None:
    encrypted: Value = {"state": "ENCRYPTED", "keyName": _KEY}
    engine.refuses_create(
        _inputs(databaseEncryption=encrypted),
        "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource",
    )
    Engine(provider=gcp, type="gcp:kms/cryptoKeyIAMMember:CryptoKeyIAMMember").create(
        {
            "cryptoKeyId": _KEY,
            "role": "roles/cloudkms.cryptoKeyEncrypterDecrypter",
            "member": "serviceAccount:service-123456789012@container-engine-robot.iam.gserviceaccount.com",
        }
    )
    _made(engine, databaseEncryption=encrypted)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("location", "europe-west4-a"),
        ("subnetwork", "other"),
        ("datapathProvider", "ADVANCED_DATAPATH"),
        ("ipAllocationPolicy", {"clusterSecondaryRangeName": "other"}),
        ("initialNodeCount", 2),
        ("nodeConfig", {"serviceAccount": "other@ml.iam.gserviceaccount.com"}),
    ],
)
def test_what_a_cluster_is_made_of_replaces_it(engine: Engine, name: str, value: Value) -> None:
    answer = engine.diff(_inputs(), {**_inputs(), name: value})
    assert answer.replaces, f"a change of {name} is another cluster"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("minMasterVersion", "1.37"),
        ("releaseChannel", {"channel": "STABLE"}),
        ("deletionProtection", True),
        ("nodeLocations", ["europe-west4-a"]),
        ("controlPlaneEndpointsConfig", {"dnsEndpointConfig": {"allowExternalTraffic": True}}),
        ("databaseEncryption", {"state": "DECRYPTED"}),
    ],
)
def test_what_a_cluster_does_changes_in_place(engine: Engine, name: str, value: Value) -> None:
    answer = engine.diff(_inputs(), {**_inputs(), name: value})
    assert not answer.replaces, f"a change of {name} is none of the cluster itself"


def test_a_version_goes_up_and_never_back(engine: Engine) -> None:
    _made(engine)
    newer = engine.update(_ID, _inputs(minMasterVersion="1.37"))
    assert str(newer["masterVersion"]).startswith("1.37."), "the least version was raised"
    older = engine.update(_ID, _inputs(minMasterVersion="1.36"))
    assert older["masterVersion"] == newer["masterVersion"], "a lower least version is satisfied already"


@pytest.mark.parametrize("protection", [{}, {"deletionProtection": True}])
def test_a_cluster_is_protected_unless_it_is_said_that_it_is_not(
    engine: Engine, protection: dict[str, Value]
) -> None:
    inputs = {name: value for name, value in _inputs().items() if name != "deletionProtection"}
    engine.create({**inputs, **protection})
    engine.refuses_delete(_ID, "Cannot destroy cluster because deletion_protection is set to true.")
    engine.update(_ID, _inputs())
    engine.delete(_ID)
    assert engine.read(_ID)[0] == "", "the protection is lifted"


def test_a_second_cluster_of_the_name_is_refused_in_the_same_place_only(
    gcp: Provider, engine: Engine
) -> None:
    _made(engine)
    other = Engine(provider=gcp, type=_CLUSTER, name="two")
    other.refuses_create(_inputs(), "googleapi: Error 409: Already exists: train., alreadyExists")
    made, _ = other.create(_inputs(location="europe-west1"))
    assert made.endswith("/locations/europe-west1/clusters/train"), "names are those of a location"


@pytest.fixture
def configured(gcp: Provider) -> Provider:
    """A provider with a project and a region of its own."""
    arguments = to_struct({"project": "ml-dev", "region": "europe-west4"})
    gcp.Configure(provider_pb2.ConfigureRequest(args=arguments))
    return gcp


def asked(provider: Provider, token: str, arguments: Properties) -> Mapping[str, Value]:
    """The answer to a question."""
    answer = provider.Invoke(provider_pb2.InvokeRequest(tok=token, args=to_struct(arguments)))
    return from_struct(getattr(answer, "return"))


def test_project_zones_and_service_agent_are_those_of_the_provider(
    gcp: Provider, configured: Provider
) -> None:
    found = asked(gcp, "gcp:organizations/getProject:getProject", {"projectId": "ml-prod"})
    assert found["projectId"] == "ml-prod", "the one that was asked about"
    assert found["number"] == "123456789012", "digits, as text"
    assert asked(configured, "gcp:organizations/getProject:getProject", {})["projectId"] == "ml-dev", (
        "by default"
    )
    question = "gcp:compute/getZones:getZones"
    assert asked(configured, question, {"region": "us-central1"})["names"] == [
        "us-central1-a",
        "us-central1-b",
        "us-central1-c",
        "us-central1-f",
    ], "which are not numbered through everywhere"
    assert asked(configured, question, {})["region"] == "europe-west4", "by default the provider's"
    found = asked(configured, "gcp:storage/getProjectServiceAccount:getProjectServiceAccount", {})
    agent = "service-123456789012@gs-project-accounts.iam.gserviceaccount.com"
    assert (found["emailAddress"], found["member"]) == (agent, f"serviceAccount:{agent}"), "for its grants"
    assert found["project"] == "ml-dev", "in the provider's project"


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
def test_data_of_a_real_project_is_not_invented(
    configured: Provider, question: str, arguments: Properties, who: str
) -> None:
    with pytest.raises(grpc.RpcError, match="are not simulated") as error:
        asked(configured, question, arguments)
    assert who in str(error.value), "the program goes on without, and says what was not checked"
