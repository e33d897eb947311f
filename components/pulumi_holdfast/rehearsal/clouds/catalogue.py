"""The description of a simulated cloud: rules by resource type, functions, and naming.

`replacing.json` lists the inputs that replace a resource on AWS, recorded from the Terraform provider.

The catalogue of each cloud is in its own package; `cloud.py` applies it to the stored objects.
"""

import importlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias, cast

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.clouds.machines import Fleet
from pulumi_holdfast.rehearsal.clouds.sdk import ResourceSchema, ValueKind
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, Inventory
from pulumi_holdfast.rehearsal.engine.kubeconfig import KubeconfigContext
from pulumi_holdfast.rehearsal.engine.values import Properties, Value


@dataclass(frozen=True, kw_only=True)
class ResourceRequest:
    """A create or update of an object: the input of the rules.

    `name` is the physical name, unique within `scope`, "" for a type without one; `digest` is hexadecimal, unique
    and stable for the object; `configuration` is the provider's. `id` is "" in `identify`.
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
    """A delete of an object."""

    target: CloudObject
    inventory: Inventory


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call of a function of the cloud."""

    token: str
    arguments: Json
    configuration: Json
    inventory: Inventory


@dataclass(frozen=True, kw_only=True)
class ConnectionAttempt:
    """A call of an API server of this cloud."""

    connection: KubeconfigContext
    inventory: Inventory


Compute: TypeAlias = Callable[[ResourceRequest], JsonValue]
Keep: TypeAlias = Callable[[ResourceRequest], Json]
Plan: TypeAlias = Callable[[Properties], Value]
Identify: TypeAlias = Callable[[ResourceRequest], str]
Refuse: TypeAlias = Callable[[ResourceRequest], str | None]
ForceReplace: TypeAlias = Callable[[Properties, Properties], frozenset[str]]
RefuseDeletion: TypeAlias = Callable[[Deletion], str | None]
Invoke: TypeAlias = Callable[[Call], Json]
RefuseConnection: TypeAlias = Callable[[ConnectionAttempt], str | None]
Remark: TypeAlias = Callable[[Inventory], Sequence[str]]


def replace_nothing(_old: Properties, _new: Properties) -> frozenset[str]:
    """Return no input path."""
    return frozenset()


def keep_inputs(request: ResourceRequest) -> Json:
    """Return the inputs unchanged."""
    return request.inputs


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The rules of one resource type.

    * `name_property`: the input with the physical name; None: by the catalogue, "": none.
    * `unique_within`: the inputs within which the name is unique; None: the catalogue's `scopes`.
    * `longest_name`: the maximum length of a generated name.
    * `identify`: computes the id; None: the catalogue's `identify`.
    * `computed`: outputs that the cloud sets, by name; they override inputs, and are unknown in a preview.
    * `planned`: the known part of computed outputs in a preview, by name.
    * `keeps`: the inputs that the cloud stores; additions appear as drift in a refresh.
    * `immutable`: input paths (`name`, `vpcConfig.subnetIds`) that cannot change in place, for a type that is not in
      `replacing.json`.
    * `force_replace`: from old and new inputs, further input paths that cannot change in place to these values.
    * `taken`: the error for a second object with one name; None: the catalogue's message.
    * `overwrites`: a second object replaces the first, as with AWS's Put and Set actions.
    * `refuse_create`, `refuse_update`, `refuse_delete`: return the cloud's error, or None to allow it.
    """

    name_property: str | None = None
    unique_within: tuple[str, ...] | None = None
    longest_name: int | None = None
    identify: Identify | None = None
    computed: Mapping[str, Compute] = field(default_factory=dict[str, Compute])
    planned: Mapping[str, Plan] = field(default_factory=dict[str, Plan])
    keeps: Keep = keep_inputs
    immutable: frozenset[str] = frozenset()
    force_replace: ForceReplace = replace_nothing
    taken: str | None = None
    overwrites: bool = False
    refuse_create: Sequence[Refuse] = ()
    refuse_update: Sequence[Refuse] = ()
    refuse_delete: Sequence[RefuseDeletion] = ()


@dataclass(frozen=True, kw_only=True)
class Autonaming:
    """The format of generated physical names: logical name, separator, random hexadecimal digits."""

    separator: str = "-"
    digits: int = 7


@dataclass(frozen=True, kw_only=True)
class Messages:
    """The cloud's error messages; `{type}`, `{name}` and `{id}` are filled in."""

    taken: str = "AlreadyExists: a {type} named {name!r} already exists"
    missing: str = "NotFound: no {type} with id {id!r}"


def identify_by_name(request: ResourceRequest) -> str:
    """Return scope and name as the id, or type and digest without a name."""
    kind = request.type.rsplit(":", 1)[-1]
    return (
        "/".join((*request.scope, request.name)) if request.name else f"{kind}-{request.digest[:17]}".lower()
    )


def describe(request: ResourceRequest, output: str) -> str:
    """Return a placeholder that names the object and the output."""
    return f"{request.name or request.id}-{output}-{request.digest[:8]}"


def remark_nothing(_: Inventory) -> Sequence[str]:
    """Return no remark."""
    return ()


def reach_everything(_: ConnectionAttempt) -> str | None:
    """Return None: every API server is reachable."""
    return None


@dataclass(frozen=True, kw_only=True)
class Catalogue:
    """The description of one package's cloud; the default works for any package.

    * `resources`, `invokes`: by token.
    * `common`: computed outputs of all types that have an output with this name.
    * `name_properties`: inputs with a physical name, in order of precedence, where they are optional strings.
    * `scopes`: inputs within which names are unique; with the name they are immutable.
    * `text`: computes a string output without a rule.
    * `fleets`: by token, the machines of an object that are nodes of its cluster.
    * `refuse_connection`: the client's error for an unreachable API server of this cloud; None: reachable.
    * `known_while_updating`: the outputs that are known in the preview of an update, beside the inputs; None: all.
    * `remarks`: limits of the simulation that the user must know for the existing objects.
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


#: The file of `recorded_replacing`.
REPLACING: Final = Path(__file__).with_name("replacing.json")


@cache
def recorded_replacing() -> Mapping[str, frozenset[str]]:
    """Return the recorded inputs that replace a resource of AWS, by type."""
    types = json.loads(REPLACING.read_text(encoding="utf-8"))["types"]
    return {token: frozenset(paths) for token, paths in types.items()}


@dataclass(frozen=True, kw_only=True)
class ResourceType:
    """A resource type: its schema and its rules."""

    schema: ResourceSchema
    rules: Rules
    catalogue: Catalogue

    @property
    def token(self) -> str:
        """The type token."""
        return self.schema.token

    @property
    def name_property(self) -> str:
        """The input with the physical name, "" for none."""
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
        recorded = recorded_replacing().get(self.token)
        if recorded is not None:
            return recorded | self.rules.immutable
        named = {self.name_property} - {""}
        return self.rules.immutable | named | set(self.scopes)

    @property
    def computed(self) -> Mapping[str, Compute]:
        """The outputs with a rule."""
        common = {name: rule for name, rule in self.catalogue.common.items() if name in self.schema.outputs}
        return {**common, **self.rules.computed}

    def physical_name(self, values: Json) -> str:
        """Return the physical name in an object's values, "" for none."""
        name = values.get(self.name_property)
        return name if isinstance(name, str) else ""

    def scope(self, values: Json) -> tuple[str, ...]:
        """Return the scope of an object's physical name."""
        return tuple(str(values[name]) for name in self.scopes if values.get(name) is not None)

    def _can_name(self, name: str) -> bool:
        found = self.schema.inputs.get(name)
        return found is not None and not found.required and found.kinds <= {ValueKind.STRING}


# The modules with a CATALOGUE; other packages use the default catalogue.
_MODULES = {
    "aws": "pulumi_holdfast.rehearsal.clouds.aws.catalogue",
    "gcp": "pulumi_holdfast.rehearsal.clouds.gcp.catalogue",
    "azure-native": "pulumi_holdfast.rehearsal.clouds.azure.catalogue",
}


# The packages by the token commands of their kubeconfigs.
_TOKEN_COMMANDS = {"aws": "aws", "gke-gcloud-auth-plugin": "gcp", "kubelogin": "azure-native"}


def package_of_command(command: str) -> str | None:
    """Return the package of a kubeconfig's token command."""
    return _TOKEN_COMMANDS.get(command)


def catalogue_of(package: str) -> Catalogue:
    """Return the catalogue of a package; the module of another cloud is not imported."""
    if package not in _MODULES:
        return Catalogue()
    return cast("Catalogue", importlib.import_module(_MODULES[package]).CATALOGUE)
