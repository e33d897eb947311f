"""A deletion waits until the object is gone, and says what holds one that stays."""

import threading
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.kubernetes_provider.deletion import DeletionTimeoutError
from holdfast.simulator.pulumi.values import Properties
from tests.support.clusters.kubernetes_provider import Resource

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

pytestmark = pytest.mark.cluster

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def held(namespace: str) -> Properties:
    metadata: Properties = {"name": "conf", "namespace": namespace, "finalizers": ["holdfast.dev/held"]}
    return {"metadata": metadata}


def let_go(client: KubeClient, namespace: str) -> None:
    client.merge_patch("v1", "ConfigMap", "conf", {"metadata": {"finalizers": None}}, namespace=namespace)


def test_a_finalizer_that_nobody_removes_is_named(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP, timeout=2)
    resource.create(held(namespace))
    with pytest.raises(
        DeletionTimeoutError, match=r"ConfigMap .*/conf still exists 2 s .*holdfast\.dev/held"
    ):
        resource.delete()
    let_go(client, namespace)
    resource.delete()
    assert client.get("v1", "ConfigMap", "conf", namespace) is None, "the next run could not go on"


def test_what_holds_its_owner_is_named_with_who_lets_it_go(client: KubeClient, namespace: str) -> None:
    pool = Resource(client=client, token=CONFIG_MAP, name="pool", timeout=2)
    pool.create({"metadata": {"name": "pool", "namespace": namespace}})
    owner = client.get("v1", "ConfigMap", "pool", namespace)
    assert owner is not None, "the owner is there"
    reference: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "pool",
        "uid": mapping(owner["metadata"])["uid"],
        "blockOwnerDeletion": True,
    }
    claim: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": "claim",
            "namespace": namespace,
            "ownerReferences": [reference],
            "finalizers": ["karpenter.sh/termination"],
        },
    }
    client.create(claim)
    with pytest.raises(DeletionTimeoutError) as failure:
        pool.delete()
    told = str(failure.value)
    assert f"ConfigMap {namespace}/pool still exists 2 s after its deletion: it owns ConfigMap" in told, told
    assert f"{namespace}/claim: finalizer karpenter.sh/termination blocks it (Karpenter removes it" in told, (
        told
    )
    client.merge_patch("v1", "ConfigMap", "claim", {"metadata": {"finalizers": None}}, namespace=namespace)
    pool.delete()


def test_what_holds_its_namespace_is_named(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP).create(held(namespace))
    space = Resource(client=client, token="kubernetes:core/v1:Namespace", id=namespace, timeout=4)
    with pytest.raises(DeletionTimeoutError) as failure:
        space.delete()
    assert f"it contains ConfigMap {namespace}/conf: finalizer holdfast.dev/held blocks it" in str(
        failure.value
    )
    let_go(client, namespace)
    Resource(client=client, token="kubernetes:core/v1:Namespace", id=namespace).delete()


def test_a_deletion_waits_for_the_finalizers_owner(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(held(namespace))

    def finalize() -> None:
        def is_going(found: "Json | None") -> bool:
            return found is not None and "deletionTimestamp" in mapping(found.get("metadata"))

        client.wait_for(
            "v1",
            "ConfigMap",
            "conf",
            namespace=namespace,
            timeout_seconds=60,
            condition=is_going,
            what="the ConfigMap is being deleted",
        )
        let_go(client, namespace)

    owner = threading.Thread(target=finalize)
    owner.start()
    resource.delete()
    owner.join()
    assert client.get("v1", "ConfigMap", "conf", namespace) is None, (
        "what it depends on would be deleted first"
    )


def test_a_create_waits_for_the_old_object_to_go(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(held(namespace))
    client.delete("v1", "ConfigMap", "conf", namespace=namespace)
    free = threading.Thread(target=let_go, args=(client, namespace))
    free.start()
    metadata: Properties = {"name": "conf", "namespace": namespace}
    resource.create({"metadata": metadata, "data": {"k": "new"}})
    free.join()
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "the new object went with the old one"
    assert live["data"] == {"k": "new"}, "the old object was taken for the new one"


def test_what_is_not_there_is_deleted(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP, id=f"{namespace}/never")
    resource.delete()
    assert client.get("v1", "ConfigMap", "never", namespace) is None, "a second destroy would fail"


def test_an_object_whose_kind_is_gone_is_deleted(client: KubeClient) -> None:
    token = f"kubernetes:g{uuid4().hex[:8]}.test/v1:Widget"
    with pytest.raises(NoSuchKind):
        client.get(token.split(":")[1], "Widget", "w")
    Resource(client=client, token=token, id="default/w").delete()


def test_a_whole_namespace_is_waited_for(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP).create({"metadata": {"name": "a", "namespace": namespace}})
    Resource(client=client, token="kubernetes:core/v1:Namespace", id=namespace).delete()
    assert client.get("v1", "Namespace", namespace) is None, "a new one of its name would be refused"
