"""What a stack reads of the stacks of other clusters: addresses, and how their clouds exchange its tokens."""

import json
from collections.abc import Mapping
from typing import Final

import pulumi

from pulumi_holdfast.config.clusters import OtherClusterSection
from pulumi_holdfast.controller.kube.access import EXTENSION, GoogleExchange, exchange_of
from pulumi_holdfast.gcp.control_plane.access import token_exchange
from pulumi_holdfast.kubernetes.fallback_controller.clusters import config_map_data, volumes
from pulumi_holdfast.kubernetes.other_clusters import other_clusters
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import asking_component, record
from tests.support.json_objects import obj, objects

ISSUER: Final = "https://oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF"
PROVIDER: Final = "projects/1/locations/global/workloadIdentityPools/holdfast-2/providers/home"
SERVER: Final = "https://there.example.com"
KUBECONFIG: Final = json.dumps(
    {"clusters": [{"name": "there", "cluster": {"server": SERVER, "certificate-authority-data": "Q0E="}}]}
)


def read(outputs: Mapping[str, object]) -> tuple[Json, Json, list[str]]:
    """The kubeconfig of the other cluster, the controller's volumes, and the warnings."""
    section = OtherClusterSection.model_validate({"name": "there", "stack": "acme/holdfast/there"})
    found: list[object] = []

    def build() -> None:
        others = other_clusters([section], issuer=ISSUER, parent=asking_component())
        pulumi.Output.all(
            config_map_data(others.connections)["there"], list(volumes(others.connections))
        ).apply(found.extend)

    warnings = record(build, other=OtherStack({"kubeconfig": KUBECONFIG, **outputs})).logged
    kubeconfig, mounted = found
    return json.loads(str(kubeconfig)), {"volumes": mounted}, warnings  # pyright: ignore[reportReturnType] - json.loads has no type


def user_of(kubeconfig: Json) -> Json:
    (entry,) = objects(kubeconfig["users"])
    return obj(entry["user"])


def test_a_cluster_whose_cloud_exchanges_tokens_gets_one_for_that_cloud() -> None:
    exchange = token_exchange(PROVIDER, "from-home@ml.iam.gserviceaccount.com")
    exchanges = {ISSUER: exchange, "https://another": token_exchange("projects/2", "x@y")}
    kubeconfig, mounted, warnings = read({"tokenExchanges": exchanges})
    assert warnings == []
    assert f"'audience': 'https://iam.googleapis.com/{PROVIDER}'" in str(mounted)
    user = user_of(kubeconfig)
    read_back = exchange_of(user)
    assert isinstance(read_back, GoogleExchange)
    assert read_back.audience == f"//iam.googleapis.com/{PROVIDER}"
    (extension,) = objects(user["extensions"])
    google = obj(obj(extension["extension"])["google"])
    assert obj(google["credential_source"])["file"] == user["tokenFile"]
    assert extension["name"] == EXTENSION


def test_a_cluster_that_takes_tokens_as_they_are_gets_one_for_its_api_server() -> None:
    kubeconfig, mounted, warnings = read({})
    assert warnings == []
    assert f"'audience': '{SERVER}'" in str(mounted)
    assert user_of(kubeconfig).keys() == {"tokenFile"}


def test_a_cluster_that_does_not_accept_jobs_of_this_one_is_a_warning_with_the_entry() -> None:
    kubeconfig, _, warnings = read({"tokenExchanges": {"https://another": {}}})
    (warning,) = warnings
    assert ISSUER in warning
    assert "acceptsFrom" in warning
    assert user_of(kubeconfig).keys() == {"tokenFile"}
