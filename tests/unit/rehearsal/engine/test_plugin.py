"""What a provider raises reaches the engine as one message, and a crash as silence."""

from typing import Any, cast

import grpc
import pytest
from google.protobuf import empty_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, status_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderServicer

from pulumi_holdfast.rehearsal.engine.plugin import InitFailedError, serve
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.provider_calls import calling


class _Raising(ResourceProviderServicer):
    def __init__(self, failure: Exception) -> None:
        self._failure = failure

    def GetPluginInfo(  # noqa: N802 - named by the protocol
        self, request: empty_pb2.Empty, context: grpc.ServicerContext
    ) -> plugin_pb2.PluginInfo:
        raise self._failure


def _answer_to(failure: Exception) -> grpc.RpcError:
    with (
        serve(_Raising(failure)) as served,
        calling(served.port) as provider,
        pytest.raises(grpc.RpcError) as caught,
    ):
        provider.GetPluginInfo(empty_pb2.Empty())
    return caught.value


def _call(error: grpc.RpcError) -> grpc.Call:
    assert isinstance(error, grpc.Call)
    return error


def test_an_error_arrives_as_one_line() -> None:
    error = _answer_to(RehearsalError("BucketAlreadyExists: ckpt"))
    assert str(_call(error).details()) == "BucketAlreadyExists: ckpt"
    error = _answer_to(KeyError("vpcId"))
    assert _call(error).code() is grpc.StatusCode.INTERNAL, "a mistake must not look like the cloud's refusal"
    assert "GetPluginInfo: KeyError: 'vpcId' at " in str(_call(error).details())
    assert "\n" not in str(_call(error).details())


def test_an_initialization_failure_arrives_with_the_state() -> None:
    error = _answer_to(
        InitFailedError(
            resource_id="training/ladder", properties={"spec": {"tiers": 2}}, inputs={}, reasons=["timed out"]
        )
    )
    metadata = cast("dict[str, bytes]", dict(cast("Any", _call(error).trailing_metadata())))
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    detail = provider_pb2.ErrorResourceInitFailed.FromString(status.details[0].value)
    assert (detail.id, list(detail.reasons)) == ("training/ladder", ["timed out"])
