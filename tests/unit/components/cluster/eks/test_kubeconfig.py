"""How the cluster is reached: a command that asks for a token, and never a token."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.components.cluster.eks.access import ApiServer, kubeconfig
from tests.support.eks_cluster import recorded_cluster
from tests.support.eks_outputs import AUTHORITY, ENDPOINT
from tests.support.inputs import mapping, objects, text

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

_NAMES = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", fullmatch=True)


def document(aws_profile: str | None = None) -> Json:
    recording = recorded_cluster(lambda args: replace(args, aws_profile=aws_profile))
    return json.loads(text(recording.one(":kubernetes"), "kubeconfig"))


def command(kubeconfig: Json) -> Json:
    (user,) = objects(kubeconfig, "users")
    return mapping(user, "user", "exec")


def test_the_provider_asks_the_aws_cli_for_a_token_of_this_cluster() -> None:
    asked = command(document())
    assert asked["command"] == "aws", "the CLI that whoever runs Pulumi has configured"
    assert asked["args"] == [
        "eks",
        "get-token",
        "--cluster-name",
        "holdfast-dev",
        "--region",
        "us-east-1",
        "--output",
        "json",
    ], "the cluster's region is not the CLI's default one"
    assert asked["interactiveMode"] == "Never", "a prompt would hang an unattended run"


def test_the_provider_goes_to_the_clusters_own_address_and_trusts_its_own_authority() -> None:
    (cluster,) = objects(document(), "clusters")
    assert mapping(cluster, "cluster") == {
        "server": ENDPOINT,
        "certificate-authority-data": AUTHORITY,
    }, "not whatever cluster the user's kubectl points at"


def test_before_there_is_a_cluster_how_it_is_reached_is_not_known() -> None:
    provider = recorded_cluster(preview=True).one(":kubernetes")
    assert "https://" not in str(provider.inputs.get("kubeconfig")), "an address was made up"


def test_a_profile_of_the_cli_is_asked_as() -> None:
    assert command(document("production"))["env"] == [{"name": "AWS_PROFILE", "value": "production"}], (
        "Pulumi and the command must be the same caller"
    )
    assert "env" not in command(document()), "without one, whatever the surroundings say"


@given(name=_NAMES, region=_NAMES, profile=st.none() | _NAMES)
def test_no_kubeconfig_holds_a_credential_and_each_is_complete(
    name: str, region: str, profile: str | None
) -> None:
    server = ApiServer(cluster_name=name, region=region, endpoint=ENDPOINT, certificate_authority=AUTHORITY)
    made = json.loads(kubeconfig(server, profile))
    context = next(one for one in made["contexts"] if one["name"] == made["current-context"])["context"]
    (cluster,), (user,) = made["clusters"], made["users"]
    assert (cluster["name"], user["name"]) == (context["cluster"], context["user"]), (
        "a reference leads nowhere"
    )
    assert set(user["user"]) == {"exec"}, "a kubeconfig that is stored with the stack must hold no credential"


@pytest.mark.parametrize("preview", [False, True])
def test_nothing_is_reached_through_any_other_provider(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    assert len(recording.of("pulumi:providers:kubernetes")) == 1, "there is one way into the cluster"
