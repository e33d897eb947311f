"""Objects are applied, taken up after an interruption, and never taken from somebody else."""

from typing import TYPE_CHECKING

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_provider.inputs import fields
from holdfast.simulator.kubernetes_provider.operation import GONE, Settings
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret
from tests.support.clusters.kubernetes_provider import (
    CONFIG_MAP,
    DEPLOYMENT,
    Resource,
    as_object,
    config_map,
    deployment,
)

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json

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


def test_a_preview_shows_what_the_server_adds_and_makes_nothing(client: KubeClient, namespace: str) -> None:
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


def test_a_preview_refuses_what_the_server_refuses(client: KubeClient, namespace: str) -> None:
    wrong: Properties = {**config_map(namespace), "data": {"not a key": "1"}}
    with pytest.raises(RehearsalError, match="not a key"):
        Resource(client=client, token=CONFIG_MAP).plan(wrong)


def test_an_object_that_somebody_else_made_is_refused(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP, name="first").create(config_map(namespace))
    second = Resource(client=client, token=CONFIG_MAP, name="second")
    with pytest.raises(RehearsalError, match=r"ConfigMap .*conf already exists.*alias"):
        second.create(config_map(namespace, "2"))
    with pytest.raises(RehearsalError, match="already exists"):
        second.plan(config_map(namespace, "2"))


def test_a_provider_that_upserts_takes_the_object_over(client: KubeClient, namespace: str) -> None:
    client.apply(as_object(config_map(namespace)), field_manager="kubectl")
    resource = Resource(client=client, token=CONFIG_MAP, settings=Settings(upserts=True))
    outcome = resource.create(config_map(namespace, "2"))
    assert fields(outcome.outputs, "data")["k"] == "2", "the setting is passed over"


def test_an_interrupted_create_is_taken_up_again(client: KubeClient, namespace: str) -> None:
    interrupted = Resource(client=client, token=CONFIG_MAP)
    interrupted.create(config_map(namespace))
    again = Resource(client=client, token=CONFIG_MAP)
    checked = again.check(config_map(namespace))
    assert again.resources.made(again.operation, checked) == f"{namespace}/conf", "recovery would forget it"
    assert again.create(config_map(namespace)).id == f"{namespace}/conf", "the second run could not go on"


def test_what_was_never_made_is_not_taken_up(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    found = resource.resources.made(resource.operation, resource.check(config_map(namespace)))
    assert found is None, "recovery would adopt an object that is not there"


def test_another_managers_field_is_named_with_its_owner(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token=CONFIG_MAP)
    resource.create(config_map(namespace))
    theirs: Json = as_object(config_map(namespace, "theirs"))
    client.apply(theirs, field_manager="autoscaler", force=True)
    with pytest.raises(RehearsalError, match=r'"autoscaler".*\.data\.k.*patchForce'):
        resource.update(config_map(namespace, "2"))


def test_a_change_by_hand_is_taken_back(client: KubeClient, namespace: str) -> None:
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


def test_the_servers_own_way_of_writing_is_no_drift(client: KubeClient, namespace: str) -> None:
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


def test_what_a_secret_holds_comes_back_secret(client: KubeClient, namespace: str) -> None:
    resource = Resource(client=client, token="kubernetes:core/v1:Secret")
    inputs: Properties = {"metadata": {"name": "s", "namespace": namespace}, "stringData": {"p": Secret("w")}}
    outcome = resource.create(inputs)
    assert outcome.outputs["data"] == Secret({"p": "dw=="}), "the password would stand in the state"
    resource.refresh()
    assert resource.changed_paths(inputs) == set(), "stringData is only ever written"


def test_a_patch_gives_its_fields_back_and_leaves_the_object(client: KubeClient, namespace: str) -> None:
    Resource(client=client, token=CONFIG_MAP, name="owner").create(config_map(namespace))
    patch = Resource(client=client, token=f"{CONFIG_MAP}Patch", name="patch")
    patch.create({**config_map(namespace), "kind": "ConfigMap", "data": {"mine": "1"}})
    patch.delete()
    live = client.get("v1", "ConfigMap", "conf", namespace)
    assert live is not None, "somebody else's object was deleted"
    assert live["data"] == {"k": "1"}, "the patched field stays"
