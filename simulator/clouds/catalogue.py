"""What a cloud does beyond keeping what it is told: the registries a cloud's own package fills.

A cloud adds, by type token: how its resources are named and identified, what it computes, what may not change in
place, what it refuses; and by token its invokes.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.clouds.machines import Fleet
from holdfast.simulator.clouds.sdk import Kind, ResourceSchema
from holdfast.simulator.clouds.state import CloudObject, Inventory
from holdfast.simulator.pulumi.kubeconfig import Connection
from holdfast.simulator.pulumi.values import Properties, Value


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """An object as it is being made, changed or read: what its computed values may depend on.

    `name` is the physical name, "" for a type that has none, unique within `scope`; `digest` is hexadecimal,
    the same for this object as long as it lives and for no other; `configuration` is that of its provider
    instance. `id` is "" while the id itself is being made.
    """

    type: str
    name: str
    scope: tuple[str, ...]
    digest: str
    inputs: Json
    configuration: Json
    inventory: Inventory
    id: str = ""


@dataclass(frozen=True, kw_only=True)
class Deletion:
    """An object about to be deleted, among all that exist."""

    target: CloudObject
    inventory: Inventory


@dataclass(frozen=True, kw_only=True)
class Call:
    """A function of the cloud being invoked."""

    token: str
    arguments: Json
    configuration: Json
    inventory: Inventory


@dataclass(frozen=True, kw_only=True)
class ConnectionAttempt:
    """Somebody about to call an API server of this cloud."""

    connection: Connection
    inventory: Inventory


Compute: TypeAlias = Callable[[ResourceRequest], JsonValue]
Keep: TypeAlias = Callable[[ResourceRequest], Json]
Plan: TypeAlias = Callable[[Properties], Value]
Identify: TypeAlias = Callable[[ResourceRequest], str]
Refuse: TypeAlias = Callable[[ResourceRequest], str | None]
RefuseDeletion: TypeAlias = Callable[[Deletion], str | None]
Invoke: TypeAlias = Callable[[Call], Json]
RefuseConnection: TypeAlias = Callable[[ConnectionAttempt], str | None]
Remark: TypeAlias = Callable[[Inventory], Sequence[str]]


def keep_what_is_asked(request: ResourceRequest) -> Json:
    """Return the inputs as they are."""
    return request.inputs


@dataclass(frozen=True, kw_only=True)
class Rules:
    """What is special about one resource type; the default is: nothing.

    * `name_property`: the input that holds its physical name; None: the catalogue's guess, "": it has none.
    * `unique_within`: further inputs that may tell two of one name apart; None: the catalogue's `scopes`.
    * `longest_name`: characters its physical name may have, for autonaming.
    * `identify`: makes its id; None: the catalogue's way.
    * `computed`: outputs the cloud sets, by name; they win over inputs of that name, and are unknown on preview.
    * `planned`: of computed outputs, by name, what is known of them on preview all the same.
    * `keeps`: the inputs as the cloud has them from then on, where it adds to them: what it adds is shown as a difference
      once somebody looks.
    * `immutable`: input paths (`name`, `vpcConfig.subnetIds`) that cannot change in place.
    * `taken`: what the cloud says to a second object of one name; None: the catalogue's message.
    * `overwrites`: a second object takes the place of the first, as where AWS calls it Put or Set.
    * `refuse_create`, `refuse_update`, `refuse_delete`: return the cloud's message, or None to let it pass.
    """

    name_property: str | None = None
    unique_within: tuple[str, ...] | None = None
    longest_name: int | None = None
    identify: Identify | None = None
    computed: Mapping[str, Compute] = field(default_factory=dict[str, Compute])
    planned: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    keeps: Keep = keep_what_is_asked
    immutable: frozenset[str] = frozenset()
    taken: str | None = None
    overwrites: bool = False
    refuse_create: Sequence[Refuse] = ()
    refuse_update: Sequence[Refuse] = ()
    refuse_delete: Sequence[RefuseDeletion] = ()


@dataclass(frozen=True, kw_only=True)
class Autonaming:
    """How a provider makes a physical name: the logical one, a separator, so many random hex digits."""

    separator: str = "-"
    digits: int = 7


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The cloud's own words; `{type}`, `{name}` and `{id}` are filled in."""

    taken: str = "AlreadyExists: a {type} named {name!r} already exists"
    missing: str = "NotFound: no {type} with id {id!r}"
    throttled: str = "Rate exceeded"


def identify_by_name(request: ResourceRequest) -> str:
    """Return scope and physical name as the id, or the type and the digest where there is no name."""
    kind = request.type.rsplit(":", 1)[-1]
    return (
        "/".join((*request.scope, request.name)) if request.name else f"{kind}-{request.digest[:17]}".lower()
    )


def describe(request: ResourceRequest, output: str) -> str:
    """Return a text that says which output of which object it stands for."""
    return f"{request.name or request.id}-{output}-{request.digest[:8]}"


def remark_nothing(_: Inventory) -> Sequence[str]:
    """Return no remark."""
    return ()


def reach_everything(_: ConnectionAttempt) -> str | None:
    """Return None: every API server answers everybody."""
    return None


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """Everything that sets one package's cloud apart; the default knows nothing and works for any package.

    * `resources`, `invokes`: by token.
    * `common`: outputs computed for every type that has an output of the name.
    * `name_properties`: inputs that hold a physical name, tried in order where they are optional text.
    * `scopes`: inputs within which names are unique; with the name they are immutable.
    * `text`: makes a computed text nothing else says more about.
    * `fleets`: by token, the machines which an object of the type keeps running as nodes of its cluster.
    * `refuse_connection`: why an API server of this cloud cannot be called, in the client's words; None: it can.
    * `known_while_updating`: of an object that an update is previewed for, the outputs beside its inputs that are known
      meanwhile; None: all that the cloud would give.
    * `remarks`: what a rehearsal cannot show of the objects that exist and their owner must know.
    """

    resources: Mapping[str, Rules] = field(default_factory=dict[str, Rules])
    invokes: Mapping[str, Invoke] = field(default_factory=dict[str, Invoke])
    common: Mapping[str, Compute] = field(default_factory=dict[str, Compute])
    name_properties: tuple[str, ...] = ("name",)
    scopes: frozenset[str] = frozenset()
    autonaming: Autonaming = field(default_factory=Autonaming)
    identify: Identify = identify_by_name
    text: Callable[[ResourceRequest, str], str] = describe
    messages: Messages = field(default_factory=Messages)
    fleets: Mapping[str, Fleet] = field(default_factory=dict[str, Fleet])
    refuse_connection: RefuseConnection = reach_everything
    known_while_updating: frozenset[str] | None = None
    remarks: Remark = remark_nothing


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """A type's schema and rules, with what follows from both."""

    schema: ResourceSchema
    rules: Rules
    catalogue: Catalogue

    @property
    def token(self) -> str:
        """The type token."""
        return self.schema.token

    @property
    def name_property(self) -> str:
        """The input that holds the physical name; "" where the type has none."""
        if self.rules.name_property is not None:
            return self.rules.name_property
        return next((name for name in self.catalogue.name_properties if self._can_name(name)), "")

    @property
    def scopes(self) -> tuple[str, ...]:
        """The inputs within which a physical name is unique, in a fixed order."""
        if self.rules.unique_within is not None:
            return self.rules.unique_within
        return tuple(sorted(self.catalogue.scopes & set(self.schema.inputs) - {self.name_property}))

    @property
    def immutable(self) -> frozenset[str]:
        """The input paths that cannot change in place."""
        named = {self.name_property} - {""}
        return self.rules.immutable | named | set(self.scopes)

    @property
    def computed(self) -> Mapping[str, Compute]:
        """The outputs the cloud sets by a rule of its own."""
        common = {name: rule for name, rule in self.catalogue.common.items() if name in self.schema.outputs}
        return {**common, **self.rules.computed}

    def physical_name(self, values: Json) -> str:
        """Return the physical name among an object's values, "" for none."""
        name = values.get(self.name_property)
        return name if isinstance(name, str) else ""

    def scope(self, values: Json) -> tuple[str, ...]:
        """Return what an object's physical name is unique within."""
        return tuple(str(values[name]) for name in self.scopes if values.get(name) is not None)

    def _can_name(self, name: str) -> bool:
        found = self.schema.inputs.get(name)
        return found is not None and not found.required and found.kinds <= {Kind.STRING}


# A module with a CATALOGUE for each package a stand-in knows more about than its SDK says.
_MODULES = {
    "aws": "holdfast.simulator.clouds.aws.catalogue",
    "gcp": "holdfast.simulator.clouds.gcp.catalogue",
    "azure-native": "holdfast.simulator.clouds.azure.catalogue",
}


# The programs kubeconfigs name to get a token, and the package whose clusters they know.
_TOKEN_COMMANDS = {"aws": "aws", "gke-gcloud-auth-plugin": "gcp", "kubelogin": "azure-native"}


def package_of_command(command: str) -> str | None:
    """Return the package to whose clusters a kubeconfig leads that asks this program for a token."""
    return _TOKEN_COMMANDS.get(command)


def catalogue_of(package: str) -> Catalogue:
    """Return what is known of a package's cloud; the plain default for one without a catalogue of its own."""
    if package not in _MODULES:
        return Catalogue()
    return cast("Catalogue", importlib.import_module(_MODULES[package]).CATALOGUE)
