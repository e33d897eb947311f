"""Property values survive the wire, and what is not known or secret stays so."""

import pytest
from google.protobuf import struct_pb2
from hypothesis import given
from hypothesis import strategies as st
from pulumi.runtime import rpc

from pulumi_holdfast.rehearsal.engine.values import (
    UNKNOWN,
    Secret,
    Value,
    from_struct,
    has_secret,
    has_unknown,
    reveal,
    strip_secrets,
    to_struct,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError

_SIGNATURE = "4dabf18193072939515e22adb298388d"
_leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**53), max_value=2**53),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(),
    st.just(UNKNOWN),
)
_values = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(), inner, max_size=3), st.builds(Secret, inner)
    ),
    max_leaves=10,
)


@given(st.dictionaries(st.text(), _values, max_size=4))
def test_values_survive_a_round_trip(properties: dict[str, Value]) -> None:
    assert from_struct(to_struct(properties)) == properties


@given(_values)
def test_a_stripped_value_holds_no_secret_and_the_same_unknowns(value: Value) -> None:
    stripped = strip_secrets(value)
    assert not has_secret(stripped)
    assert has_unknown(stripped) == has_unknown(value)


def test_values_have_the_form_that_the_engine_reads() -> None:
    assert "hunter2" not in repr({"password": Secret("hunter2")})
    with pytest.raises(ValueError, match="UNKNOWN has no JSON form"):
        reveal({"arn": UNKNOWN})
    arrived = from_struct(to_struct({"nodes": 3, "price": 0.5}))
    assert [type(arrived["nodes"]), type(arrived["price"])] == [int, float], "a count must be an integer"


def test_marks_of_the_engine_are_unknown_secret_or_refused() -> None:
    wire = struct_pb2.Struct()
    wire.update({"zones": "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2", "name": rpc.UNKNOWN})
    assert from_struct(wire) == {"zones": UNKNOWN, "name": UNKNOWN}
    wire = struct_pb2.Struct()
    wire.update({"token": {_SIGNATURE: "d0e6a833031e9bbcd3f4e8bde6ca49a4", "secret": True}})
    assert from_struct(wire) == {"token": Secret(UNKNOWN)}
    wire = struct_pb2.Struct()
    wire.update({"code": [{_SIGNATURE: "c44067f5952c0a294b673a41bacd8c17", "path": "x.zip"}]})
    with pytest.raises(RehearsalError, match=r"code\[0\]: a file asset"):
        from_struct(wire)
