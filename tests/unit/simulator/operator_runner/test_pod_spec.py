"""A container's environment is what a kubelet would make of its pod."""

from collections.abc import Mapping
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.operator_runner.pod_spec import (
    CannotRunError,
    expand,
    in_units_of,
    parse_quantity,
    resolve_environment,
)
from tests.support.hosted_pods import container, pod

OBJECTS = {("ConfigMap", "settings"): {"level": "debug"}, ("Secret", "keys"): {"token": "s3cret"}}


def lookup(kind: str, name: str) -> Mapping[str, str] | None:
    return OBJECTS.get((kind, name))


def resolved(*env: Json, env_from: JsonValue = ()) -> Mapping[str, str]:
    return resolve_environment(pod(of=container(env=env, envFrom=env_from)), lookup)


def value_from(**source: JsonValue) -> Json:
    return {"name": "X", "valueFrom": source}


def test_a_later_variable_sees_an_earlier_one() -> None:
    variables = resolved({"name": "A", "value": "1"}, {"name": "B", "value": "$(A)-$(A)"})
    assert variables == {"A": "1", "B": "1-1"}, "kubelets expand in order"


def test_a_reference_to_nothing_stays_as_it_is_and_two_dollars_are_one() -> None:
    assert expand("$(NONE) $$(A)", {"A": "1"}) == "$(NONE) $(A)", "so does a kubelet"


@given(st.text(alphabet=st.characters(exclude_characters="$")))
def test_a_text_without_dollars_is_not_changed(text: str) -> None:
    assert expand(text, {"A": "1"}) == text, "there is nothing to expand"


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
def test_a_variable_comes_from_where_it_says(source: dict[str, JsonValue], expected: str) -> None:
    assert resolved(value_from(**source)) == {"X": expected}, f"{source} has this value"


def test_an_optional_key_that_is_missing_makes_no_variable() -> None:
    source = value_from(configMapKeyRef={"name": "settings", "key": "none", "optional": True})
    assert resolved(source) == {}, "the container starts without it"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ({"configMapKeyRef": {"name": "settings", "key": "none"}}, "ConfigMap settings has no key none"),
        ({"secretKeyRef": {"name": "none", "key": "token"}}, "Secret none has no key token"),
        ({"fieldRef": {"fieldPath": "status.podIP"}}, "has no status.podIP"),
        ({"fileKeyRef": {"path": "x"}}, "comes from fileKeyRef"),
    ],
)
def test_a_source_that_is_missing_is_named(source: dict[str, JsonValue], complaint: str) -> None:
    with pytest.raises(CannotRunError) as caught:
        resolved(value_from(**source))
    assert complaint in str(caught.value), "the pod's status shows this to whoever looks"


def test_whole_objects_become_variables_and_single_ones_win() -> None:
    variables = resolved(
        {"name": "CFG_level", "value": "info"},
        env_from=[{"prefix": "CFG_", "configMapRef": {"name": "settings"}}, {"secretRef": {"name": "keys"}}],
    )
    assert variables == {"CFG_level": "info", "token": "s3cret"}, "env overrides envFrom"


def test_a_whole_object_that_is_missing_is_named_unless_it_is_optional() -> None:
    assert resolved(env_from=[{"configMapRef": {"name": "none", "optional": True}}]) == {}, (
        "it may be missing"
    )
    with pytest.raises(CannotRunError, match="ConfigMap none does not exist"):
        resolved(env_from=[{"configMapRef": {"name": "none"}}])


@given(
    st.integers(min_value=0, max_value=10**9),
    st.sampled_from([("", 1), ("Ki", 1024), ("Gi", 2**30), ("k", 1000)]),
)
def test_a_quantity_is_its_number_times_its_suffix(number: int, suffix: tuple[str, int]) -> None:
    assert parse_quantity(f"{number}{suffix[0]}") == number * suffix[1], "exactly, without floating point"


@given(st.integers(min_value=1, max_value=10**6), st.integers(min_value=1, max_value=10**6))
def test_a_part_of_a_unit_counts_as_a_whole_one(amount: int, divisor: int) -> None:
    units = in_units_of(str(amount), str(divisor))
    assert units - 1 < Fraction(amount, divisor) <= units, "rounded up, as the downward API does"


@pytest.mark.parametrize("text", ["", "Gi", "1.2.3", "12 Mi", "1KiB", "x"])
def test_a_text_that_is_no_quantity_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a quantity"):
        parse_quantity(text)
