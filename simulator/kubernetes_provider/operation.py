"""What every operation on a resource has at hand, and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from pulumi.runtime.proto import provider_pb2

from holdfast.scheduling.json import Json
from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import Cancellation
from holdfast.simulator.kubernetes_client.objects import mapping
from holdfast.simulator.pulumi.values import Properties

_UNHEEDED = {
    "renderYamlToDirectory": "objects go to an API server here: leave it unset",
}


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How one instance of the provider behaves. Its kubeconfig is not among it: see KubernetesProvider."""

    default_namespace: str | None = None
    upserts: bool = False
    forces_patches: bool = False
    config_maps_mutable: bool = False
    secrets_mutable: bool = False

    @classmethod
    def of(cls, configuration: Json) -> "Settings":
        """Return the settings in a provider's configuration; what it does not set has the plugin's default."""
        namespace = configuration.get("namespace")
        return cls(
            default_namespace=str(namespace) if namespace else None,
            upserts=_is_true(configuration, "upsertExistingObjects"),
            forces_patches=_is_true(configuration, "enablePatchForce"),
            config_maps_mutable=_is_true(configuration, "enableConfigMapMutable"),
            secrets_mutable=_is_true(configuration, "enableSecretMutable"),
        )


def unheeded(configuration: Json) -> dict[str, str]:
    """Return the settings that cannot be rehearsed, each with the reason and the fix."""
    found = {name: reason for name, reason in _UNHEEDED.items() if configuration.get(name)}
    if str(configuration.get("enableServerSideApply", "true")).lower() == "false":
        found["enableServerSideApply"] = "objects are applied by the API server here: leave it unset"
    return found


def _is_true(configuration: Json, name: str) -> bool:
    return str(configuration.get(name, "")).lower() == "true"


AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
WAIT_FOR = "pulumi.com/waitFor"
PATCH_FORCE = "pulumi.com/patchForce"
_TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
_FIELD_MANAGER = "pulumi.com/patchFieldManager"
_PROPAGATION = "pulumi.com/deletionPropagationPolicy"

DEFAULT_TIMEOUT_SECONDS = 600.0


def annotation(obj: Json, name: str) -> str | None:
    """Return an annotation's value, None where it is not set."""
    value = mapping(mapping(obj.get("metadata")).get("annotations")).get(name)
    return None if value is None else str(value)


def is_set(obj: Json, name: str) -> bool:
    """Whether an annotation says "true"."""
    return annotation(obj, name) == "true"


def field_manager(obj: Json) -> str | None:
    """Return the field manager the program chose, None where it chose none."""
    return annotation(obj, _FIELD_MANAGER) or None


def timeout_seconds(obj: Json, custom: float) -> float:
    """Return how long to wait for an object: customTimeouts (0: not set), else the annotation, else 600 s."""
    if custom > 0:
        return custom
    try:
        return float(int(annotation(obj, _TIMEOUT_SECONDS) or ""))
    except ValueError:
        return DEFAULT_TIMEOUT_SECONDS


def propagation(obj: Json) -> str:
    """Return what becomes of an object's dependents when it is deleted: they go first, unless annotated."""
    chosen = (annotation(obj, _PROPAGATION) or "").lower()
    return {"orphan": "Orphan", "background": "Background"}.get(chosen, "Foreground")


RELEASE = "kubernetes:helm.sh/v3:Release"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of object, such as apps/v1 Deployment; the core group's apiVersion is `v1`."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


def kind_of(token: str) -> Kind:
    """Return the kind a token such as `kubernetes:apps/v1:Deployment` stands for.

    Custom resources have tokens of the same form: `kubernetes:karpenter.sh/v1:NodePool`. Raises RehearsalError
    for a token of another form.
    """
    package, _, rest = token.partition(":")
    api_version, _, kind = rest.rpartition(":")
    group, _, version = api_version.partition("/")
    if package != "kubernetes" or not (group and version and kind):
        raise RehearsalError(
            f"type {token!r} is not rehearsed; kubernetes:<group>/<version>:<Kind> and {RELEASE} are"
        )
    return Kind(api_version=version if group == "core" else api_version, kind=kind)


def is_patch(token: str, kind: str) -> bool:
    """Whether a token asks for a patch of an object that others made, as `ConfigMapPatch` does.

    A kind may have a name of its own that ends in Patch: only the object tells them apart.
    """
    return kind_of(token).kind == f"{kind}Patch"


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How to name what the program gives no name: the logical name, and what the engine says to it."""

    logical_name: str
    seed: bytes = b""
    proposed: str | None = None
    disabled: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of the engine about one resource.

    `client` and `cancellation` end with the call. `custom_timeout` is in seconds, 0 where none is set.
    `has_predecessor`: the engine knows the resource already, so its create replaces what there is.
    """

    urn: str
    token: str
    client: KubeClient
    cancellation: Cancellation
    settings: Settings
    preview: bool = False
    has_predecessor: bool = False
    custom_timeout: float = 0.0

    @property
    def name(self) -> str:
        """The resource's logical name."""
        return self.urn.rsplit("::", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A resource as it is now: its id (empty when there is none, or on preview), outputs and inputs."""

    id: str = ""
    outputs: Properties
    inputs: Properties


GONE = Outcome(outputs={}, inputs={})


class Resources(Protocol):
    """What the engine can ask of resources of one sort. Each raises RehearsalError with the fix."""

    def check(self, operation: Operation, news: Properties, olds: Properties, naming: Naming) -> Properties:
        """Return the inputs, complete."""
        ...

    def diff(
        self, operation: Operation, outputs: Properties, old: Properties, new: Properties
    ) -> provider_pb2.DiffResponse:
        """Compare the inputs applied last with new ones."""
        ...

    def plan_create(self, operation: Operation, inputs: Properties) -> Properties:
        """Return the outputs that a create would give, as far as known."""
        ...

    def plan_update(self, operation: Operation, inputs: Properties, outputs: Properties) -> Properties:
        """Return the outputs that an update would give, as far as known."""
        ...

    def create(self, operation: Operation, inputs: Properties) -> Outcome:
        """Make it, and wait until it works."""
        ...

    def read(
        self, operation: Operation, resource_id: str, outputs: Properties, inputs: Properties
    ) -> Outcome:
        """Return it as it is now; GONE when it is not there."""
        ...

    def update(
        self,
        operation: Operation,
        resource_id: str,
        inputs: Properties,
        outputs: Properties,
        ignored: Sequence[str],
    ) -> Outcome:
        """Bring it up to new inputs, and wait until it works."""
        ...

    def remove(self, operation: Operation, resource_id: str, outputs: Properties) -> None:
        """Delete it, and wait until it is gone."""
        ...

    def made(self, operation: Operation, inputs: Properties) -> str | None:
        """Return the id of what an interrupted create did make, None if it made nothing."""
        ...


def object_id(obj: Json) -> str:
    """Return `namespace/name`, or `name` for an object of the cluster's scope."""
    metadata = mapping(obj.get("metadata"))
    namespace, name = metadata.get("namespace"), str(metadata["name"])
    return f"{namespace}/{name}" if namespace else name


def place_of(resource_id: str) -> tuple[str | None, str]:
    """Return the namespace (None: cluster scope) and name in an id."""
    namespace, _, name = resource_id.rpartition("/")
    return namespace or None, name
