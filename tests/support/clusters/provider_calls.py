"""Calls a served provider as the engine does."""

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, cast

import grpc
import pytest
from pulumi.runtime.proto import provider_pb2
from pulumi.runtime.proto.provider_pb2_grpc import ResourceProviderStub

from pulumi_holdfast.rehearsal.engine.values import Properties, Value, from_struct, to_struct


class _Method(Protocol):
    def __call__(self, request: Any) -> Any: ...

    def future(self, request: Any) -> Any: ...


class Provider(Protocol):
    """The methods of the protocol, untyped as the generated stub leaves them."""

    def __getattr__(self, name: str) -> _Method: ...


@contextmanager
def calling(port: int) -> Generator[Provider]:
    """Connect to a provider as one provider instance of the engine."""
    with grpc.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        yield cast("Provider", ResourceProviderStub(channel))


@dataclass(frozen=True, kw_only=True)
class Engine:
    """The engine's side of one resource: checks, plans and makes it as the engine would."""

    provider: Provider
    type: str
    name: str = "one"

    @property
    def urn(self) -> str:
        """The resource's URN."""
        return f"urn:pulumi:test::rehearsed::{self.type}::{self.name}"

    def check(
        self, inputs: Properties, *, old: Properties | None = None, seed: bytes = b"seed"
    ) -> dict[str, Value]:
        """Return the checked inputs; the violations end the test."""
        answer = self._check(inputs, old or {}, seed)
        assert not answer.failures, f"refused: {answer.failures}"
        return from_struct(answer.inputs)

    def refusals(self, inputs: Properties) -> Mapping[str, str]:
        """Return the reasons inputs are refused for, by property."""
        return {one.property: one.reason for one in self._check(inputs, {}, b"seed").failures}

    def plan(self, inputs: Properties) -> dict[str, Value]:
        """Return the outputs of a previewed create."""
        request = provider_pb2.CreateRequest(
            urn=self.urn, type=self.type, name=self.name, properties=to_struct(inputs), preview=True
        )
        return from_struct(self.provider.Create(request).properties)

    def create(self, inputs: Properties) -> tuple[str, dict[str, Value]]:
        """Return id and outputs of a create, its inputs checked before."""
        request = provider_pb2.CreateRequest(
            urn=self.urn, type=self.type, name=self.name, properties=to_struct(self.check(inputs))
        )
        answer = self.provider.Create(request)
        return answer.id, from_struct(answer.properties)

    def read(
        self, object_id: str, *, inputs: Properties | None = None
    ) -> tuple[str, dict[str, Value], dict[str, Value]]:
        """Return id, outputs and inputs of a read."""
        request = provider_pb2.ReadRequest(
            id=object_id, urn=self.urn, type=self.type, name=self.name, inputs=to_struct(inputs or {})
        )
        answer = self.provider.Read(request)
        return answer.id, from_struct(answer.properties), from_struct(answer.inputs)

    def update(self, object_id: str, inputs: Properties, *, preview: bool = False) -> dict[str, Value]:
        """Return the outputs of an update."""
        request = provider_pb2.UpdateRequest(
            id=object_id,
            urn=self.urn,
            type=self.type,
            name=self.name,
            news=to_struct(inputs),
            preview=preview,
        )
        return from_struct(self.provider.Update(request).properties)

    def delete(self, object_id: str) -> None:
        """Delete an object."""
        self.provider.Delete(
            provider_pb2.DeleteRequest(id=object_id, urn=self.urn, type=self.type, name=self.name)
        )

    def removes(self, object_id: str) -> None:
        """Delete an object and check that it is gone."""
        self.delete(object_id)
        assert self.read(object_id)[0] == "", f"{object_id} is still there"

    def refuses_create(self, inputs: Properties, *parts: str) -> None:
        """Check that a create is refused with a message that contains all parts."""
        refused(lambda: self.create(inputs), *parts)

    def refuses_update(self, object_id: str, inputs: Properties, *parts: str) -> None:
        """Check that an update is refused with a message that contains all parts."""
        refused(lambda: self.update(object_id, inputs), *parts)

    def refuses_delete(self, object_id: str, *parts: str) -> None:
        """Check that a delete is refused with a message that contains all parts."""
        refused(lambda: self.delete(object_id), *parts)

    def diff(self, old: Properties, new: Properties) -> Any:
        """Return the answer to a diff of inputs."""
        return self.provider.Diff(
            provider_pb2.DiffRequest(
                urn=self.urn, type=self.type, name=self.name, old_inputs=to_struct(old), news=to_struct(new)
            )
        )

    def _check(self, inputs: Properties, old: Properties, seed: bytes) -> Any:
        return self.provider.Check(
            provider_pb2.CheckRequest(
                urn=self.urn,
                type=self.type,
                name=self.name,
                news=to_struct(inputs),
                olds=to_struct(old),
                randomSeed=seed,
            )
        )


def refusal(call: Callable[[], object]) -> str:
    """Return the message a call is refused with; that it is not refused ends the test."""
    with pytest.raises(grpc.RpcError) as caught:
        call()
    assert isinstance(caught.value, grpc.Call), "the call did not end with an answer of the server"
    return caught.value.details() or ""


def refused(call: Callable[[], object], *parts: str) -> None:
    """Check that a call is refused with a message that contains all parts."""
    message = refusal(call)
    assert all(part in message for part in parts), message


def invoke(provider: Provider, function: str, arguments: Properties) -> dict[str, Value]:
    """Return the answer of a function of the provider."""
    request = provider_pb2.InvokeRequest(tok=function, args=to_struct(arguments))
    return from_struct(getattr(provider.Invoke(request), "return"))
