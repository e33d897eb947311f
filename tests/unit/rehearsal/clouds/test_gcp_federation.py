"""Simulated workload identity pools, their providers, custom roles, and who is granted something by them."""

from typing import Final

import pytest

from pulumi_holdfast.rehearsal.engine.values import Properties
from tests.support.clusters.provider_calls import Engine, Provider, refusal

_POOL: Final[Properties] = {"workloadIdentityPoolId": "holdfast-1", "project": "ml-dev"}
_PROVIDER: Final[Properties] = {
    "workloadIdentityPoolId": "holdfast-1",
    "workloadIdentityPoolProviderId": "home",
    "project": "ml-dev",
    "oidc": {"issuerUri": "https://oidc.example.com/1"},
    "attributeMapping": {"google.subject": "assertion.sub"},
}
_ROLE: Final[Properties] = {
    "roleId": "holdfast_1",
    "project": "ml-dev",
    "title": "t",
    "permissions": ["container.clusters.get"],
}


@pytest.fixture
def pools(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type="gcp:iam/workloadIdentityPool:WorkloadIdentityPool")


@pytest.fixture
def providers(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type="gcp:iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider")


@pytest.fixture
def roles(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type="gcp:projects/iAMCustomRole:IAMCustomRole")


@pytest.fixture
def grants(gcp: Provider) -> Engine:
    return Engine(provider=gcp, type="gcp:projects/iAMMember:IAMMember")


@pytest.mark.parametrize("name", ["gcp-home", "abc", "Home", "a" * 33, "home_1"])
def test_names_that_google_refuses(pools: Engine, providers: Engine, name: str) -> None:
    pools.refuses_create({**_POOL, "workloadIdentityPoolId": name}, "workload_identity_pool_id")
    pools.create(_POOL)
    providers.refuses_create({**_PROVIDER, "workloadIdentityPoolProviderId": name}, "pool_provider_id")


def test_a_provider_needs_its_pool(pools: Engine, providers: Engine) -> None:
    providers.refuses_create(_PROVIDER, "Error 404: Requested entity was not found.")
    pools.create(_POOL)
    assert providers.create(_PROVIDER)[0].endswith("/holdfast-1/providers/home")


def test_a_principal_of_a_pool_is_granted_something_once_the_pool_exists(
    pools: Engine, grants: Engine
) -> None:
    principal = "principal://iam.googleapis.com/projects/123456789012/locations/global/workloadIdentityPools"
    given: Properties = {
        "project": "ml-dev",
        "role": "roles/viewer",
        "member": f"{principal}/holdfast-1/subject/system:serviceaccount:a:b",
    }
    grants.refuses_create(given, "Error 400: Identity Pool does not exist (holdfast-1).")
    pools.create(_POOL)
    assert grants.create(given)[0]


def test_a_custom_role_is_granted_once_it_exists(roles: Engine, grants: Engine) -> None:
    given: Properties = {
        "project": "ml-dev",
        "role": "projects/ml-dev/roles/holdfast_1",
        "member": "user:a@example.com",
    }
    assert "does not exist in the resource's hierarchy" in refusal(lambda: grants.create(given))
    roles.refuses_create({**_ROLE, "roleId": "holdfast-1"}, "role_id")
    roles.refuses_create({**_ROLE, "permissions": []}, "At least one permission")
    roles.create(_ROLE)
    assert grants.create(given)[0]
