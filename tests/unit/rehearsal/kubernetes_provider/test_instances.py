"""A change of the cluster replaces a provider instance; an unreachable cluster refuses operations."""

import pytest

from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret, Value
from pulumi_holdfast.rehearsal.kubernetes_provider.instances import (
    DELETE_UNREACHABLE,
    ClusterUnreachableError,
    UnreachableCluster,
    drops_unreachable,
    replacing,
)
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import RELEASE


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


def _replacing(old: Properties, new: Properties) -> list[str]:
    return [change.top for change in replacing(old, new)]


def test_another_cluster_replaces_the_instance() -> None:
    old = _settings()
    elsewhere = "https://two.example"
    assert _replacing(old, _settings(elsewhere)) == ["kubeconfig"], "the objects are in the old cluster"
    assert _replacing(old, {"kubeconfig": UNKNOWN}) == ["kubeconfig"], "it may select another cluster"
    secret: Properties = {"kubeconfig": Secret(old["kubeconfig"])}
    for same in (_settings(), secret, _settings(arguments=("--profile", "x")), _settings(namespace="a")):
        assert _replacing(old, same) == [], "a replacement recreates every object"
    named = _settings(clusterIdentifier="a")
    assert _replacing(named, _settings(elsewhere, clusterIdentifier="a")) == [], "the same at another address"
    other = _replacing(named, _settings(clusterIdentifier="b"))
    assert other == ["clusterIdentifier"], "it is another cluster at the same address"


_REASON = "unable to load schema information from the API server: no such host"
_OBJECT = "kubernetes:core/v1:ConfigMap"


@pytest.mark.parametrize(
    ("token", "verb", "message"),
    [
        (_OBJECT, "create", f"^configured Kubernetes cluster is unreachable: {_REASON}$"),
        (_OBJECT, "update", f"^configured Kubernetes cluster is unreachable: {_REASON}$"),
        (_OBJECT, "read", f"failed to read .*{_REASON}.*{DELETE_UNREACHABLE}"),
        (_OBJECT, "delete", f"{_REASON}.*{DELETE_UNREACHABLE}"),
        (RELEASE, "create", "can't create Helm Release with unreachable cluster"),
        (RELEASE, "delete", "can't delete Helm Release with unreachable cluster"),
    ],
)
def test_operations_on_an_unreachable_cluster_are_refused_with_the_reason(
    token: str, verb: str, message: str
) -> None:
    with pytest.raises(ClusterUnreachableError, match=message):
        UnreachableCluster(reason=_REASON, drops=False).refuse(token, verb)


def test_unreachable_resource_is_dropped_on_request_but_not_created_and_a_release_not_deleted() -> None:
    assert drops_unreachable({"deleteUnreachable": True}, {}), "the setting asks for it"
    assert drops_unreachable({}, {DELETE_UNREACHABLE: "true"}), "so does the variable"
    assert not drops_unreachable({}, {DELETE_UNREACHABLE: ""}), "otherwise the state is kept"
    cluster = UnreachableCluster(reason=_REASON, drops=True)
    for token, verb in ((_OBJECT, "read"), (_OBJECT, "delete"), (RELEASE, "read")):
        cluster.refuse(token, verb)
    for token, verb in ((RELEASE, "delete"), (_OBJECT, "create")):
        with pytest.raises(ClusterUnreachableError):
            cluster.refuse(token, verb)
