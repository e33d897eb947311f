"""The fields, variables and volumes of a pod are resolved like a kubelet resolves them."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import (
    CannotRunError,
    ProjectedToken,
    Volume,
    expand,
    mounts_of,
    on_this_machine,
    projected_tokens,
    resolve_environment,
    volumes_of,
)
from tests.support.builders.operator_pods import container, pod

OBJECTS = {("ConfigMap", "settings"): {"level": "debug"}, ("Secret", "keys"): {"token": "s3cret"}}


def lookup(kind: str, name: str) -> Mapping[str, str] | None:
    return OBJECTS.get((kind, name))


def resolved(*env: Json, env_from: JsonValue = ()) -> Mapping[str, str]:
    return resolve_environment(pod(of=container(env=env, envFrom=env_from)), lookup)


def value_from(**source: JsonValue) -> Json:
    return {"name": "X", "valueFrom": source}


def test_variables_are_expanded_in_order_and_env_takes_precedence() -> None:
    variables = resolved({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(A)"})
    assert variables == {"A": "1", "B": "1-1"}
    assert expand("$(NONE) $$(A)", {"A": "1"}) == "$(NONE) $(A)"
    source = value_from(configMapKeyRef={"name": "settings", "key": "none", "optional": True})
    assert resolved(source) == {}
    variables = resolved(
        {"name": "CFG_level", "value": "info"},
        env_from=[{"prefix": "CFG_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    )
    assert variables == {"CFG_level": "info", "token": "s3cret"}
    assert resolved(env_from=[{"configMapRef": {"name": "none", "optional": True}}]) == {}
    with pytest.raises(CannotRunError, match="ConfigMap none does not exist"):
        resolved(env_from=[{"configMapRef": {"name": "none"}}])


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"fieldRef": {"fieldPath": "metadata.namespace"}}, "jobset-system"),
        ({"fieldRef": {"fieldPath": "metadata.labels['app.kubernetes.io/name']"}}, "jobset"),
        ({"fieldRef": {"fieldPath": "spec.nodeName"}}, "system-0"),
        ({"resourceFieldRef": {"resource": "limits.memory", "divisor": "0"}}, "1073741824"),
        ({"resourceFieldRef": {"resource": "requests.cpu", "divisor": "1m"}}, "500"),
        ({"resourceFieldRef": {"resource": "limits.cpu"}}, "0"),
        ({"configMapKeyRef": {"name": "settings", "key": "level"}}, "debug"),
        ({"secretKeyRef": {"name": "keys", "key": "token"}}, "s3cret"),
    ],
)
def test_variable_has_the_value_of_its_source(source: dict[str, JsonValue], expected: str) -> None:
    assert resolved(value_from(**source)) == {"X": expected}


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({"configMapKeyRef": {"name": "settings", "key": "none"}}, "ConfigMap settings has no key none"),
        ({"secretKeyRef": {"name": "none", "key": "token"}}, "Secret none has no key token"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "has no status.podIP"),
        ({"fileKeyRef": {"path": "x"}}, "comes from fileKeyRef"),
    ],
)
def test_missing_source_is_reported(source: dict[str, JsonValue], complaint: str) -> None:
    with pytest.raises(CannotRunError) as caught:
        resolved(value_from(**source))
    assert complaint in str(caught.value)


CONFIG: Json = {"name": "config", "configMap": {"name": "settings"}}


def mounting(*volumes: Json, sub_path: str = "") -> Json:
    """A pod that mounts each volume below `/`."""
    below = {"subPath": sub_path} if sub_path else {}
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}", **below} for volume in volumes]
    unused: Json = {"name": "unused", "hostPath": {"path": "/"}}
    return pod(of=container(volumeMounts=mounts), spec={"volumes": [*volumes, unused]})


def test_mounted_volumes_are_found_without_tokens() -> None:
    secret: Json = {"secretName": "tls", "optional": True, "items": [{"key": "a", "path": "b"}]}
    mounted = mounting(CONFIG, {"name": "cert", "secret": secret}, {"name": "tmp", "emptyDir": {}})
    assert volumes_of(mounted) == [
        Volume(name="config", kind="ConfigMap", source="settings"),
        Volume(name="cert", kind="Secret", source="tls", optional=True, items={"a": "b"}),
        Volume(name="tmp", kind="Empty"),
    ]
    token = mounting({"name": "kube-api-access", "projected": {}})
    assert volumes_of(token) == []
    assert mounts_of(token, Path("/pods")) == {}
    sources: JsonValue = [
        {"serviceAccountToken": {"audience": "https://there", "path": "there"}},
        {"serviceAccountToken": {"audience": "https://far", "path": "far", "expirationSeconds": 600}},
    ]
    others = mounting({"name": "tokens", "projected": {"sources": sources}})
    assert projected_tokens(others) == [
        ProjectedToken(volume="tokens", path="there", audience="https://there", seconds=3600),
        ProjectedToken(volume="tokens", path="far", audience="https://far", seconds=600),
    ]
    assert mounts_of(others, Path("/pods")) == {"/tokens": Path("/pods/tokens")}
    with pytest.raises(CannotRunError, match="volume data has type hostPath"):
        volumes_of(mounting({"name": "data", "hostPath": {"path": "/"}}))
    one_file = mounts_of(mounting(CONFIG, sub_path="app.yaml"), Path("/pods"))
    assert one_file == {"/config": Path("/pods/config/app.yaml")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("/etc/config", "/here/config"),
        ("--config=/etc/config/app.yaml", "--config=/here/config/app.yaml"),
        ("/etc/config/a,/etc/config/b", "/here/config/a,/here/config/b"),
        ("/etc/config/certs/tls.crt", "/here/certs/tls.crt"),
        ("/etc/config/a.zip:/etc/config/certs/b.zip", "/here/config/a.zip:/here/certs/b.zip"),
        ("/etc/configuration", "/etc/configuration"),
        ("/data/etc/config", "/data/etc/config"),
        ("plain", "plain"),
    ],
)
def test_only_paths_below_a_mount_are_translated(text: str, expected: str) -> None:
    mounts = {"/etc/config": Path("/here/config"), "/etc/config/certs": Path("/here/certs")}
    assert on_this_machine(text, mounts) == expected
