"""An instance that leads to another cluster is another instance, and with it all that it made."""

import pytest

from holdfast.simulator.kubernetes_provider.instances import replacing
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value


def _settings(
    server: str = "https://one.example", *, arguments: tuple[str, ...] = (), **more: Value
) -> Properties:
    kubeconfig: Properties = {
        "clusters": [{"name": "it", "cluster": {"server": server}}],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": {"command": "aws", "args": arguments}}}],
    }
    return {"kubeconfig": kubeconfig, **more}


def test_another_address_is_another_cluster() -> None:
    changed = replacing(_settings(), _settings("https://two.example"))
    assert [one.top for one in changed] == ["kubeconfig"], (
        "objects of the old cluster would be looked for in the new"
    )


@pytest.mark.parametrize(
    "new",
    [_settings(), _settings(arguments=("--profile", "x")), _settings(namespace="a")],
    ids=["no change", "another way to a token", "another setting"],
)
def test_what_leads_to_the_same_cluster_replaces_nothing(new: Properties) -> None:
    assert replacing(_settings(), new) == [], "everything inside would be made anew"


def test_what_is_not_known_yet_may_lead_anywhere() -> None:
    changed = replacing(_settings(), {"kubeconfig": UNKNOWN})
    assert [one.top for one in changed] == ["kubeconfig"], "the plugin plans for the worst"


def test_becoming_a_secret_changes_no_cluster() -> None:
    same = _settings()
    assert replacing(same, {"kubeconfig": Secret(same["kubeconfig"])}) == [], "its value is the same"


def test_an_identifier_alone_tells_clusters_apart_where_there_is_one() -> None:
    here, moved = (
        _settings(clusterIdentifier="a"),
        _settings("https://two.example", clusterIdentifier="a"),
    )
    assert replacing(here, moved) == [], "it is the same cluster at another address"
    changed = replacing(here, _settings(clusterIdentifier="b"))
    assert [one.top for one in changed] == ["clusterIdentifier"], "it is another cluster at the same address"
