"""Inputs are completed as the plugin completes them, and refused where no API server could take them."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.inputs import Naming, autoname, checked
from holdfast.simulator.kubernetes_provider.properties import fields
from holdfast.simulator.pulumi.values import UNKNOWN, Properties, Secret, Value

CONFIG_MAP = "kubernetes:core/v1:ConfigMap"


def complete(
    news: Properties,
    *,
    token: str = CONFIG_MAP,
    olds: Properties | None = None,
    naming: Naming | None = None,
    namespace: str | None = None,
) -> dict[str, Value]:
    return checked(
        token,
        news,
        olds or {},
        naming=naming or Naming(logical_name="conf", seed=b"seed"),
        default_namespace=lambda: namespace,
    )


def test_kind_and_api_version_follow_from_the_token() -> None:
    inputs = complete({"metadata": {"name": "a"}})
    assert (inputs["apiVersion"], inputs["kind"]) == ("v1", "ConfigMap"), "the object would have no kind"


def test_an_object_without_a_name_is_named_after_the_resource() -> None:
    metadata = fields(complete({}), "metadata")
    assert re.fullmatch(r"conf-[0-9a-f]{8}", str(metadata["name"])), "the plugin names it in this form"
    assert fields(metadata, "annotations") == {"pulumi.com/autonamed": "true"}, (
        "a replacement could not be made before the old one goes"
    )


def test_a_name_once_given_is_kept() -> None:
    first = complete({"metadata": {"labels": {"a": "b"}}})
    second = complete({"data": {"k": "v"}}, olds=first, naming=Naming(logical_name="conf", seed=b"other"))
    names = [fields(inputs, "metadata")["name"] for inputs in (first, second)]
    assert names[0] == names[1], "every run would replace the object"


def test_the_engine_may_propose_the_name() -> None:
    inputs = complete({}, naming=Naming(logical_name="conf", proposed="team-conf"))
    assert fields(inputs, "metadata")["name"] == "team-conf", "the stack's own naming rule is passed over"


@pytest.mark.parametrize(
    ("news", "token", "naming", "reason"),
    [
        ({}, CONFIG_MAP, Naming(logical_name="conf", disabled=True), "autonaming is disabled"),
        ({"metadata": {"generateName": "a-"}}, CONFIG_MAP, None, "generateName"),
        ({"kind": "ConfigMap"}, "kubernetes:core/v1:ConfigMapPatch", None, "needs the name of the object"),
        (
            {"kind": "ConfigMapList", "items": []},
            "kubernetes:core/v1:ConfigMapList",
            None,
            "cannot be created",
        ),
    ],
)
def test_what_no_server_could_take_is_refused(
    news: Properties, token: str, naming: Naming | None, reason: str
) -> None:
    with pytest.raises(RehearsalError, match=reason):
        complete(news, token=token, naming=naming)


def test_what_the_server_writes_is_left_out() -> None:
    inputs = complete({"metadata": {"name": "a", "uid": "u", "resourceVersion": "1", "managedFields": []}})
    assert inputs["metadata"] == {"name": "a"}, "a manifest taken from a cluster could not be applied"


def test_the_providers_namespace_is_taken_only_where_none_is_named() -> None:
    named = complete({"metadata": {"name": "a", "namespace": "mine"}}, namespace="team")
    unnamed = complete({"metadata": {"name": "a"}}, namespace="team")
    assert fields(named, "metadata")["namespace"] == "mine", "the program's own word counts more"
    assert fields(unnamed, "metadata")["namespace"] == "team", "the provider's default is passed over"


@pytest.mark.parametrize(
    "metadata", [UNKNOWN, {"name": UNKNOWN}, {"name": "a", "annotations": UNKNOWN}, {"annotations": UNKNOWN}]
)
def test_unknown_parts_stay_unknown(metadata: Value) -> None:
    inputs = complete({"metadata": metadata})
    found = inputs["metadata"]
    kept = found is UNKNOWN or UNKNOWN in (
        fields(inputs, "metadata").get("name"),
        fields(inputs, "metadata").get("annotations"),
    )
    assert kept, "a preview would show what up does not make"


def test_a_secret_is_secret_from_the_start() -> None:
    inputs = complete(
        {"metadata": {"name": "a"}, "stringData": {"p": "w"}}, token="kubernetes:core/v1:Secret"
    )
    assert inputs["stringData"] == Secret({"p": "w"}), "the password would be written into the state"


@given(st.binary(min_size=1), st.from_regex(r"[a-z]{1,20}", fullmatch=True))
def test_the_same_seed_gives_the_same_name(seed: bytes, name: str) -> None:
    assert autoname(name, seed) == autoname(name, seed), "a preview would announce another name than up gives"
