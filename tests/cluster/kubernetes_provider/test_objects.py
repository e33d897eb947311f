"""Objects of the simulated kubernetes provider: apply, waits and deletion."""

import threading
from uuid import uuid4

import pytest

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties, Secret
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation, KubeCancelled, NoSuchKind
from pulumi_holdfast.rehearsal.kubernetes_provider.deletion import DeletionTimeoutError
from pulumi_holdfast.rehearsal.kubernetes_provider.inputs import fields
from pulumi_holdfast.rehearsal.kubernetes_provider.operation import GONE, ProviderSettings
from tests.support.clusters.kubernetes_provider import (
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    Resource,
    as_object,
    config_map,
    deployment,
    widget_definition,
)

pytestmark = pytest.mark.cluster


def test_an_object_is_created_changed_and_deleted(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    assert resource.create(config_map(namespace)).id == f"{namespace}/conf", "the plugin's ids have this form"
    resource.update(config_map(namespace, "2"))
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "the object is gone"
    assert live["data"] == {"k": "2"}, "the change did not reach the API server"
    resource.delete()
    assert client.get("v1", "ConfigMap", "conf", namespace) is None, "the object outlives its resource"


def test_a_preview_shows_defaults_of_the_server_and_creates_nothing(
    client: KubeClient, namespace: str
) -> None:
    shown = Resource(client=client, token=DEPLOYMENT).plan(deployment(namespace))
    assert fields(shown, "spec")["replicas"] == 1, "the server's defaults are not shown"
    assert fields(shown, "metadata")["uid"] is UNKNOWN, "a dry run's uid is not the one it will have"
    assert client.get("apps/v1", "Deployment", "web", namespace) is None, "a preview made an object"


@pytest.mark.parametrize(
    ("token", "inputs"),
    [
        (CONFIG_MAP, {"metadata": {"name": "a", "namespace": "made-by-the-same-run"}}),
        ("kubernetes:unserved.test/v1:Widget", {"metadata": {"name": "a"}}),
        (CONFIG_MAP, {"metadata": {"name": "a"}, "data": {"k": UNKNOWN}}),
    ],
)
def test_a_preview_shows_the_inputs_where_the_server_cannot_say_more(
    client: KubeClient, token: str, inputs: Properties
) -> None:
    shown = Resource(client=client, token=token).plan(inputs)
    assert fields(shown, "metadata")["name"] == "a", "the first preview of a stack would fail"


def test_a_preview_rejects_what_the_server_rejects(client: KubeClient, namespace: str) -> None:
    wrong: Properties = {**config_map(namespace), "data": {"not a key": "1"}}
    with pytest.raises(RehearsalError, match="not a key"):
        Resource(client=client, token=CONFIG_MAP).plan(wrong)


def test_an_object_of_another_owner_is_rejected(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP, name="first").create(config_map(namespace))
    second = Resource(client=client, token=CONFIG_MAP, name="second")
    with pytest.raises(RehearsalError, match=r"ConfigMap .*conf already exists.*alias"):
        second.create(config_map(namespace, "2"))
    with pytest.raises(RehearsalError, match="already exists"):
        second.plan(config_map(namespace, "2"))


def test_a_provider_that_upserts_takes_the_object_over(client: KubeClient, namespace: str) -> None:
    client.apply(as_object(config_map(namespace)), field_manager="kubectl")
    resource = Resource(client=client, token=CONFIG_MAP, settings=ProviderSettings(upserts=True))
    outcome = resource.create(config_map(namespace, "2"))
    assert fields(outcome.outputs, "data")["k"] == "2", "the setting is passed over"


def test_an_interrupted_create_is_adopted(client: KubeClient, namespace: str) -> None:
    interrupted = Resource(client=client, token=CONFIG_MAP)
    interrupted.create(config_map(namespace))
    again = Resource(client=client, token=CONFIG_MAP)
    checked = again.check(config_map(namespace))
    assert again.resources.made(again.operation, checked) == f"{namespace}/conf", "recovery would forget it"
    assert again.create(config_map(namespace)).id == f"{namespace}/conf", "the second run could not go on"


def test_an_object_that_was_never_created_is_not_adopted(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    found = resource.resources.made(resource.operation, resource.check(config_map(namespace)))
    assert found is None, "recovery would adopt an object that is not there"


def test_a_field_conflict_names_the_other_manager(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(config_map(namespace))
    theirs: Json = as_object(config_map(namespace, "theirs"))
    client.apply(theirs, field_manager="autoscaler", force=True)
    with pytest.raises(RehearsalError, match=r'"autoscaler".*\.data\.k.*patchForce'):
        resource.update(config_map(namespace, "2"))


def test_a_change_by_hand_is_reverted(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(config_map(namespace))
    by_hand: Json = as_object(config_map(namespace, "mine"))
    client.apply(by_hand, field_manager="kubectl-edit", force=True)
    assert resource.refresh().inputs != resource.check(config_map(namespace)), "the change stays unseen"
    assert resource.changed_paths(config_map(namespace)) == {"data.k"}, "the plan does not show it"
    resource.update(config_map(namespace))
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "the object is gone"
    assert live["data"] == {"k": "1"}, "the program's word does not count"


def test_an_ignored_field_keeps_its_live_value(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(config_map(namespace))
    theirs: Json = as_object(config_map(namespace, "theirs"))
    client.apply(theirs, field_manager="autoscaler", force=True)
    resource.update({**config_map(namespace), "immutable": False}, ignored=["data.k"])
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "the object is gone"
    assert live["data"] == {"k": "theirs"}, "ignoreChanges is passed over"


def test_an_object_deleted_by_hand_is_gone_after_a_refresh(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(config_map(namespace))
    client.delete("v1", "ConfigMap", "conf", namespace=namespace, propagation="Background")
    with pytest.raises(RehearsalError, match="deleted outside this stack; refresh"):
        resource.update(config_map(namespace, "2"))
    assert resource.refresh() == GONE, "the next up would not bring it back"


def test_normalized_values_are_no_drift(client: KubeClient, namespace: str) -> None:
    inputs = deployment(namespace)
    container: Properties = {"name": "c", "image": "a", "resources": {"requests": {"cpu": "1000m"}}}
    spec: Properties = {
        **fields(inputs, "spec"),
        "replicas": 0,
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}},
    }
    resource = Resource(client=client, token=DEPLOYMENT)
    resource.create({**inputs, "spec": spec})
    resource.refresh()
    assert resource.changed_paths({**inputs, "spec": spec}) == set(), "up after a refresh would change it"


def test_outputs_of_a_secret_are_secret(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token="kubernetes:core/v1:Secret")
    inputs: Properties = {"metadata": {"name": "s", "namespace": namespace}, "stringData": {"p": Secret("w")}}
    outcome = resource.create(inputs)
    assert outcome.outputs["data"] == Secret({"p": "dw=="}), "the password would stand in the state"
    resource.refresh()
    assert resource.changed_paths(inputs) == set(), "stringData is only ever written"


def test_a_deleted_patch_releases_its_fields_and_keeps_the_object(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP, name="owner").create(config_map(namespace))
    patch = Resource(client=client, token=f"{CONFIG_MAP}Patch", name="patch")
    patch.create({**config_map(namespace), "kind": "ConfigMap", "data": {"mine": "1"}})
    patch.delete()
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "an object of another owner was deleted"
    assert live["data"] == {"k": "1"}, "the patched field stays"


def test_a_deployment_that_never_runs_fails_with_the_reason_of_the_pod(
    client: KubeClient, namespace: str
) -> None:
    resource = Resource(client=client, token=DEPLOYMENT, timeout=5)
    with pytest.raises(InitFailedError, match=r"0 of 1 pods are available.*didn't match"):
        resource.create(deployment(namespace, selector={"no-node": "has-this"}))


def test_an_unready_deployment_is_repaired_by_the_next_run(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=DEPLOYMENT, timeout=5)
    with pytest.raises(InitFailedError):
        resource.create(deployment(namespace, selector={"no-node": "has-this"}))
    resource.id, resource.timeout = f"{namespace}/web", 60
    outcome = resource.update(deployment(namespace))
    assert fields(outcome.outputs, "status")["availableReplicas"] == 1, "its pod does not run"


def test_a_refresh_reports_a_deployment_that_stopped_running(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=DEPLOYMENT)
    resource.create(deployment(namespace))
    nowhere: Json = {"spec": {"template": {"spec": {"nodeSelector": {"no-node": "has-this"}}}}}
    client.merge_patch("apps/v1", "Deployment", "web", nowhere, namespace=namespace)
    with pytest.raises(InitFailedError, match="web is not ready"):
        resource.refresh()


def test_a_service_waits_for_the_pods_it_selects(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token="kubernetes:core/v1:Service", timeout=2)
    service: Properties = {
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]},
    }
    outcome = resource.create(service)
    assert fields(outcome.outputs, "spec")["clusterIP"], (
        "a service whose pods come later is ready, as by the plugin"
    )


def test_a_custom_object_waits_for_its_definition(client: KubeClient, namespace: str) -> None:
    group = f"g{uuid4().hex[:8]}.test"
    widget = Resource(client=client, token=f"kubernetes:{group}/v1:Widget")
    made = threading.Thread(
        target=Resource(client=client, token=CRD).create, args=(widget_definition(group),)
    )
    made.start()
    outcome = widget.create({"metadata": {"name": "w", "namespace": namespace}, "spec": {"size": 1}})
    made.join()
    assert outcome.id == f"{namespace}/w", "a program that makes both at once would fail"


def test_an_unknown_built_in_kind_is_rejected_at_once(client: KubeClient, namespace: str) -> None:
    nothing: Properties = {"metadata": {"name": "w", "namespace": namespace}}
    with pytest.raises(RehearsalError, match=r"does not serve kind Widget of apps/v1.*CRD"):
        Resource(client=client, token="kubernetes:apps/v1:Widget").create(nothing)


def test_a_cancelled_run_stops_waiting_at_once(client: KubeClient, namespace: str) -> None:
    cancellation = Cancellation()
    resource = Resource(client=client, token=DEPLOYMENT, cancellation=cancellation)

    def cancel_once_made() -> None:
        client.wait_for(
            "apps/v1",
            "Deployment",
            "web",
            namespace=namespace,
            timeout_seconds=180,
            condition=lambda found: found is not None,
            what="the Deployment is made",
        )
        cancellation.cancel()

    cancel = threading.Thread(target=cancel_once_made)
    cancel.start()
    with pytest.raises(KubeCancelled):
        resource.create(deployment(namespace, selector={"no-node": "has-this"}))
    cancel.join()


def held(namespace: str) -> Properties:
    metadata: Properties = {"name": "conf", "namespace": namespace, "finalizers": ["holdfast.dev/held"]}
    return {"metadata": metadata}


def let_go(client: KubeClient, namespace: str) -> None:
    client.merge_patch("v1", "ConfigMap", "conf", {"metadata": {"finalizers": None}}, namespace=namespace)


def test_a_blocking_finalizer_is_named(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP, timeout=2)
    resource.create(held(namespace))
    with pytest.raises(
        DeletionTimeoutError, match=r"ConfigMap .*/conf still exists 2 s .*holdfast\.dev/held"
    ):
        resource.delete()
    let_go(client, namespace)
    resource.delete()
    assert client.get("v1", "ConfigMap", "conf", namespace) is None, "the next run could not go on"


def test_a_blocking_dependent_is_named_with_its_remover(client: KubeClient, namespace: str) -> None:
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


def test_an_object_that_blocks_its_namespace_is_named(client: KubeClient, namespace: str) -> None:
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
        def is_going(found: Json | None) -> bool:
            return found is not None and "deletionTimestamp" in mapping(found.get("metadata"))

        client.wait_for(
            "v1",
            "ConfigMap",
            "conf",
            namespace=namespace,
            timeout_seconds=180,
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


def test_a_create_waits_for_the_deletion_of_the_old_object(client: KubeClient, namespace: str) -> None:
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


def test_deleting_a_missing_object_succeeds(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP, id=f"{namespace}/never")
    resource.delete()
    assert client.get("v1", "ConfigMap", "never", namespace) is None, "a second destroy would fail"


def test_deleting_an_object_of_an_undefined_kind_succeeds(client: KubeClient) -> None:
    token = f"kubernetes:g{uuid4().hex[:8]}.test/v1:Widget"
    with pytest.raises(NoSuchKind):
        client.get(token.split(":")[1], "Widget", "w")
    Resource(client=client, token=token, id="default/w").delete()


def test_deleting_a_namespace_waits_for_its_objects(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP).create({"metadata": {"name": "a", "namespace": namespace}})
    Resource(client=client, token="kubernetes:core/v1:Namespace", id=namespace).delete()
    assert client.get("v1", "Namespace", namespace) is None, "a new one of its name would be refused"
