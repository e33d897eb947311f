"""The simulated Google Cloud IAM."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, refusal

_ACCOUNT = "gcp:serviceaccount/account:Account"
_CLUSTER = "gcp:container/cluster:Cluster"
_ON_ACCOUNT = "gcp:serviceaccount/iAMMember:IAMMember"
_ON_PROJECT = "gcp:projects/iAMMember:IAMMember"

_EMAIL = "nodes-of-dev@ml-dev.iam.gserviceaccount.com"
_NODES: Properties = {"accountId": "nodes-of-dev", "project": "ml-dev"}
_POOLS = "//iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools"
_PODS = [
    f"principal:{_POOLS}/ml-dev.svc.id.goog/subject/ns/vision/sa/trainer",
    f"principalSet:{_POOLS}/ml-dev.svc.id.goog/namespace/vision",
    "serviceAccount:ml-dev.svc.id.goog[vision/trainer]",
]


def given(member: str) -> Properties:
    return {"project": "ml-dev", "role": "roles/storage.objectUser", "member": member}


def a_cluster(state_file: Path, *, identities: bool) -> None:
    """Have a cluster in the project, that gives its pods identities or does not."""
    with CloudState(state_file).changing() as console:
        pool = {"workloadIdentityConfig": {"workloadPool": "ml-dev.svc.id.goog"}} if identities else {}
        console.put(CloudObject(type=_CLUSTER, id="dev", urn="", inputs={"name": "dev", **pool}))


@pytest.fixture
def grant(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type=_ON_PROJECT)


@pytest.mark.parametrize("pods", _PODS)
def test_pods_have_no_identity_before_the_first_cluster(grant: Engine, state_file: Path, pods: str) -> None:
    grant.refuses_create(given(pods), "Error 400: Identity Pool does not exist (ml-dev.svc.id.goog).")
    a_cluster(state_file, identities=True)
    assert grant.create(given(pods))[0]


def test_an_account_has_an_address_and_grants_need_it(gcp: Provider, grant: Engine) -> None:
    member = given(f"serviceAccount:{_EMAIL}")
    grant.refuses_create(member, f"Error 400: Service account {_EMAIL} does not exist., badRequest")
    made, outputs = Engine(provider=gcp, type=_ACCOUNT).create(_NODES)
    assert made == f"projects/ml-dev/serviceAccounts/{_EMAIL}"
    assert (outputs["email"], outputs["member"]) == (_EMAIL, f"serviceAccount:{_EMAIL}")
    assert grant.create(member)[0]
    second = Engine(provider=gcp, type=_ACCOUNT, name="two")
    second.refuses_create(_NODES, "nodes-of-dev already exists")
    assert second.create({**_NODES, "project": "ml-prod"})[0]


@pytest.mark.parametrize(
    "member",
    [
        "serviceAccount:trainer@another-project.iam.gserviceaccount.com",
        "serviceAccount:service-1@container-engine-robot.iam.gserviceaccount.com",
        "group:trainers@example.com",
        "allAuthenticatedUsers",
    ],
)
def test_members_outside_the_project_count_as_existing(grant: Engine, member: str) -> None:
    assert grant.create(given(member))[0]


def test_pods_are_let_use_an_account_in_the_same_way(gcp: Provider, state_file: Path) -> None:
    account, _ = Engine(provider=gcp, type=_ACCOUNT).create(_NODES)
    inputs: Properties = {
        "serviceAccountId": account,
        "role": "roles/iam.workloadIdentityUser",
        "member": _PODS[2],
    }
    use = Engine(provider=gcp, type=_ON_ACCOUNT)
    assert "Identity Pool does not exist" in refusal(lambda: use.create(inputs))
    a_cluster(state_file, identities=True)
    assert use.create(inputs)[0].startswith(account)
