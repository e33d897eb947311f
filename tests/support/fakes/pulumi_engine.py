"""Runs programs under Pulumi's mocks and records every registration.

A recording is returned only after every registration is complete, so that tests can assert that something is
absent.
"""

import asyncio
import gc
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CoroutineType
from typing import TypeAlias, TypeVar, cast
from unittest.mock import patch

import pulumi
from pulumi.runtime import mocks as pulumi_mocks
from pulumi.runtime import resource as pulumi_resource
from pulumi.runtime import rpc, settings
from pulumi.runtime.proto import alias_pb2, resource_pb2, source_pb2
from pulumi.runtime.sync_await import _sync_await as _sync_await_of_sdk  # pyright: ignore[reportPrivateUsage] - public nowhere

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.fakes.cloud_outputs import azure_inputs_shown, azure_outputs, eks_outputs, gke_outputs
from tests.support.fakes.other_stack import OtherStack

PROJECT = "holdfast"
_STACK_TYPE = "pulumi:pulumi:Stack"

T = TypeVar("T")


class _OneThreadLoop(asyncio.SelectorEventLoop):
    """Calls the mocks at once. In threads, as the SDK calls an engine, each call takes an event loop and two switches."""

    def run_in_executor(  # pyright: ignore[reportIncompatibleMethodOverride] - the SDK needs no cancellation
        self, executor: None, func: Callable[..., T], *args: object
    ) -> asyncio.Future[T]:
        """Return what the function has returned or raised."""
        assert executor is None, "the SDK names no executor"
        result: asyncio.Future[T] = self.create_future()
        try:
            result.set_result(func(*args))
        except Exception as error:  # noqa: BLE001 - the program gets it, whatever it is
            result.set_exception(error)
        return result


def _sync_await(awaitable: "CoroutineType[object, None, T]") -> T:
    """Run the serialization of known values, which waits for nothing; the SDK would run other tasks meanwhile."""
    if awaitable.__name__ != rpc.serialize_properties.__name__:
        return _sync_await_of_sdk(awaitable)
    try:
        awaitable.send(None)
    except StopIteration as done:
        return cast("T", done.value)
    raise AssertionError("mocks return values that are not known yet")


def run_mocked(
    build: Callable[[], object],
    mocks: pulumi_mocks.Mocks,
    monitor: pulumi_mocks.MockMonitor,
    *,
    stack: str,
    preview: bool = False,
) -> None:
    """Run a program to its end and raise what it raises."""
    # Programs run on the thread's event loop, which an earlier `asyncio.run` has removed.
    asyncio.set_event_loop(_main_loop())
    # A stack keeps the transformations that a program registers on it, so each program gets a new one.
    settings.set_root_resource(cast("pulumi.Resource", None))
    pulumi.runtime.set_mocks(mocks, project=PROJECT, stack=stack, preview=preview, monitor=monitor)

    def run() -> None:
        build()

    drained = cast("Callable[[], None]", pulumi.runtime.test(run))  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
    # A program creates thousands of objects while an SDK of a million is loaded: half of the time would go into
    # collecting garbage that there is not.
    gc.disable()
    try:
        with (
            # Each registration would name all frames of Python above it, most of which are pytest's; mocks read none.
            patch.object(pulumi_resource, "_get_stack_trace", source_pb2.StackTrace),
            # URNs of aliases are for engines that take no alias specifications; Azure's SDK has ten for each resource.
            patch.object(pulumi.resource, "collapse_alias_to_urn", _no_urn),
            patch.object(pulumi_mocks, "_sync_await", _sync_await),
        ):
            drained()
    finally:
        gc.enable()


def _no_urn(*_alias_and_defaults: object) -> None:
    """Stand for the URN that a resource keeps of an alias."""


@cache
def _main_loop() -> asyncio.AbstractEventLoop:
    return _OneThreadLoop()


class _Answering(pulumi_mocks.Mocks):
    def __init__(self, answer: Callable[[str, Json], Json]) -> None:
        self._answer = answer

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        try:
            return dict(self._answer(args.token, cast("Json", args.args))), []  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        except PermissionError as denied:
            return {}, [("", str(denied))]

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        if args.custom:
            raise AssertionError(f"{args.typ} is made, where nothing but questions may be asked")
        return None, {}


def asking_component() -> pulumi.Resource:
    """The cluster whose preflight asks, in a program that makes none."""
    return pulumi.ComponentResource("tests:index:TrainingCluster", "main")


def asked_of(answer: Callable[[str, Json], Json], ask: Callable[[], object], *, stack: str) -> None:
    """Run lookups against a cloud that answers them; a PermissionError is a denial."""
    mocks = _Answering(answer)
    run_mocked(ask, mocks, pulumi_mocks.MockMonitor(mocks), stack=stack)


STACK = "local"

#: Returns the result of a function by its token and arguments.
Answer: TypeAlias = Callable[[str, Json], Json]


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """One registration: its inputs and options. Parents and dependencies are logical names.

    `made_of` holds, by property, the URNs of the resources on which its value depends; `aliases` the URNs under which a
    state may have the resource, those that follow from aliases of its parents included.
    """

    type: str
    name: str
    urn: str
    inputs: Json
    parent: str
    custom: bool
    protect: bool
    retain_on_delete: bool
    provider: str
    depends_on: frozenset[str]
    deleted_with: str
    delete_timeout: str
    import_id: str
    ignore_changes: frozenset[str]
    replace_on_changes: frozenset[str]
    deletes_first: bool
    made_of: Mapping[str, tuple[str, ...]]
    aliases: tuple[str, ...]
    plugin_version: str


@dataclass(kw_only=True)
class Recording:
    """All registrations of a program, in order; its outputs, what it has logged for users, and the provider of each lookup."""

    resources: list[Recorded] = field(default_factory=list[Recorded])
    looked_up_by: list[str] = field(default_factory=list[str])
    outputs: dict[str, JsonValue] = field(default_factory=dict[str, "JsonValue"])
    logged: list[str] = field(default_factory=list[str])

    def of(self, type_suffix: str) -> list[Recorded]:
        """The resources whose type has this suffix: `:Node`, `LocalCluster`."""
        return [resource for resource in self.resources if resource.type.endswith(type_suffix)]

    def one(self, type_suffix: str, name: str = "") -> Recorded:
        """The only resource whose type has this suffix, with the logical name if given."""
        found = [resource for resource in self.of(type_suffix) if name in {"", resource.name}]
        assert len(found) == 1, f"exactly one {type_suffix} {name} is expected, not {[r.name for r in found]}"
        return found[0]

    def everything_before(self, resource: Recorded) -> set[str]:
        """The names of all resources on which a resource or its parents depend."""
        by_name = {found.name: found for found in self.resources}
        seen: set[str] = set()
        waiting = [resource]
        while waiting:
            found = waiting.pop()
            names = {*found.depends_on, found.parent, found.provider} & by_name.keys() - seen
            seen |= names
            waiting.extend(by_name[name] for name in names)
        return seen

    def __iter__(self) -> Iterator[Recorded]:
        """All registrations, in order."""
        return iter(self.resources)


class _Echo(pulumi_mocks.Mocks):
    """A cloud that accepts everything: each resource has its inputs as outputs."""

    def __init__(self, answer: Answer, *, preview: bool) -> None:
        self._answer = answer
        self._preview = preview

    def call(self, args: pulumi_mocks.MockCallArgs) -> tuple[dict[str, object], list[tuple[str, str]]]:
        arguments = cast("Json", args.args)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        return dict(self._answer(args.token, arguments)), []

    def new_resource(self, args: pulumi_mocks.MockResourceArgs) -> tuple[str | None, dict[str, object]]:
        inputs = cast("dict[str, object]", args.inputs)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        return outputs_of(args.typ, args.name, inputs, preview=self._preview)


def outputs_of(
    kind: str, name: str, inputs: dict[str, object], *, preview: bool = False
) -> tuple[str, dict[str, object]]:
    """The id and the outputs of a resource. In a preview no resource has an id: the program gets an unknown value."""
    shown = {**_added(kind, name, preview=preview), **azure_inputs_shown(kind, inputs)}
    return ("", shown) if preview else (_id(kind, name), {**shown, **_computed(kind, name, inputs)})


def _added(kind: str, name: str, *, preview: bool) -> dict[str, object]:
    """Outputs of nearly every resource: a name, known on preview, and on AWS an ARN, known later."""
    if kind.startswith("gcp:"):
        return {"name": f"{name}-0a1b2c3"}
    if not kind.startswith("aws:"):
        return {}
    service = kind.split(":")[1].split("/")[0]
    arn = f"arn:aws:{service}:us-east-1:123456789012:{name}"
    own = "bucket" if kind == "aws:s3/bucket:Bucket" else "name"
    return {own: f"{name}-0a1b2c3", **({} if preview else {"arn": arn})}


def _id(kind: str, name: str) -> str:
    """The ids of launch templates are the ones that the provider checks where they are used."""
    return f"lt-{name.encode().hex()}" if kind == "aws:ec2/launchTemplate:LaunchTemplate" else f"{name}-id"


def _computed(kind: str, name: str, inputs: dict[str, object]) -> dict[str, object]:
    return {**eks_outputs(kind, inputs), **gke_outputs(kind, inputs), **azure_outputs(kind, name, inputs)}


class _RecordingMonitor(pulumi_mocks.MockMonitor):
    """Records each request with its options, most of which mocks do not receive."""

    def __init__(self, mocks: pulumi_mocks.Mocks, recording: Recording) -> None:
        super().__init__(mocks)
        self._recording = recording
        self._aliases: dict[str, tuple[str, ...]] = {}

    def RegisterResource(  # noqa: N802 - the name of the call
        self, request: resource_pb2.RegisterResourceRequest
    ) -> resource_pb2.RegisterResourceResponse:
        response = super().RegisterResource(request)  # pyright: ignore[reportUnknownMemberType]  # the SDK's mocks name no type
        if request.type != _STACK_TYPE:
            self._aliases[response.urn] = tuple(dict.fromkeys(self._aliases_of(request)))
            self._recording.resources.append(_recorded(request, response.urn, self._aliases[response.urn]))
        return response

    def Invoke(self, request: resource_pb2.ResourceInvokeRequest) -> resource_pb2.ResourceInvokeResponse:  # noqa: N802 - the name of the call
        self._recording.looked_up_by.append(_provider(request.provider))
        return super().Invoke(request)  # pyright: ignore[reportUnknownMemberType]  # the SDK's mocks name no type

    def make_urn(self, parent: str, type_: str, name: str) -> str:
        """The URN that the engine gives: with the types of all parents below the stack, where the mocks have one."""
        above = parent.split("::")[2] if parent else ""
        chain = type_ if above in {"", _STACK_TYPE} else f"{above}${type_}"
        return "::".join([f"urn:pulumi:{settings.get_stack()}", settings.get_project(), chain, name])

    def _aliases_of(self, request: resource_pb2.RegisterResourceRequest) -> Iterator[str]:
        """The engine's rules: each alias, and what it and the name are below each alias of the parent.

        A name that begins with the parent's begins with the parent's former name there.
        """
        given = cast("Sequence[alias_pb2.Alias]", request.aliases)  # pyright: ignore[reportUnknownMemberType] - untyped in the SDK
        own = [each.urn or self._urn_of(each.spec, request) for each in given]
        yield from own
        for former in self._aliases.get(request.parent, ()):
            for urn in (self.make_urn(request.parent, request.type, request.name), *own):
                kind, name, parent = urn.split("::")[2].rpartition("$")[2], _name(urn), _name(request.parent)
                renamed = _name(former) + name.removeprefix(parent) if name.startswith(parent) else name
                yield self.make_urn(former, kind, renamed)

    def _urn_of(self, spec: alias_pb2.Alias.Spec, request: resource_pb2.RegisterResourceRequest) -> str:
        parent = "" if spec.noParent else spec.parentUrn or request.parent
        urn = self.make_urn(parent, spec.type or request.type, spec.name or request.name).split("::")
        stack, project = spec.stack or urn[0].rpartition(":")[2], spec.project or urn[1]
        return "::".join([f"urn:pulumi:{stack}", project, *urn[2:]])


def _recorded(request: resource_pb2.RegisterResourceRequest, urn: str, aliases: tuple[str, ...]) -> Recorded:
    inputs = cast("Json", rpc.deserialize_properties(request.object, keep_unknowns=True))
    return Recorded(
        type=request.type,
        name=request.name,
        urn=urn,
        inputs=inputs,
        parent=_name(request.parent),
        custom=request.custom,
        protect=request.protect,
        retain_on_delete=request.retainOnDelete,
        provider=_provider(request.provider),
        depends_on=frozenset(_name(dependency) for dependency in request.dependencies),
        deleted_with=_name(request.deletedWith),
        delete_timeout=request.customTimeouts.delete,
        import_id=request.importId,
        ignore_changes=frozenset(request.ignoreChanges),
        made_of={name: tuple(sources.urns) for name, sources in request.propertyDependencies.items()},
        replace_on_changes=frozenset(request.replaceOnChanges),
        deletes_first=request.deleteBeforeReplace,
        aliases=aliases,
        plugin_version=request.version,
    )


def _name(urn: str) -> str:
    return urn.rpartition("::")[2]


def _provider(reference: str) -> str:
    """The name in a reference to a provider, which ends with its ID."""
    return _name(reference.rpartition("::")[0])


def _nothing(_token: str, _arguments: Json) -> Json:
    return {}


def record(
    build: Callable[[], object],
    *,
    preview: bool = False,
    answer: Answer = _nothing,
    other: OtherStack | None = None,
) -> Recording:
    """Run a program and return what it registers.

    In a `preview` the IDs of resources are unknown, as before the first `up`. `answer` returns the results of
    lookups. `other` is the stack to which each StackReference leads. Exceptions of the program are raised.
    """
    recording = Recording()

    def export(name: str, value: object) -> None:
        pulumi.Output.from_input(value).apply(
            lambda known: recording.outputs.__setitem__(name, cast("JsonValue", known))
        )

    mocks = _Echo(answer, preview=preview)
    monitor = _RecordingMonitor(mocks, recording)
    with (
        # What an engine would print.
        patch.object(pulumi.log, "warn", recording.logged.append),
        patch.object(pulumi.log, "info", recording.logged.append),
        patch.object(pulumi, "export", export),
        patch.object(pulumi, "StackReference", other or pulumi.StackReference),
    ):
        run_mocked(build, mocks, monitor, stack=STACK, preview=preview)
    return recording


_RECORDINGS: dict[tuple[Hashable, ...], Recording] = {}


def recorded_once(configuration: tuple[Hashable, ...], run: Callable[[], Recording]) -> Recording:
    """The recording of a program with this configuration, which runs once for all tests of a process; do not change it."""
    if configuration not in _RECORDINGS:
        _RECORDINGS[configuration] = run()
    return _RECORDINGS[configuration]
