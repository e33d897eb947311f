"""The data types of the provider: operations, their outcome, kinds, annotations and settings."""

from dataclasses import dataclass

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.engine.values import Properties
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import Cancellation


@dataclass(frozen=True, kw_only=True)
class ProviderSettings:
    """The settings of one provider instance, without its kubeconfig (see KubernetesProvider)."""

    default_namespace: str | None = None
    upserts: bool = False
    forces_patches: bool = False
    config_maps_mutable: bool = False
    secrets_mutable: bool = False

    @classmethod
    def of(cls, configuration: Json) -> "ProviderSettings":
        """Return the settings of a provider configuration, with the defaults of the plugin."""
        namespace = configuration.get("namespace")
        return cls(
            default_namespace=str(namespace) if namespace else None,
            upserts=_is_true(configuration, "upsertExistingObjects"),
            forces_patches=_is_true(configuration, "enablePatchForce"),
            config_maps_mutable=_is_true(configuration, "enableConfigMapMutable"),
            secrets_mutable=_is_true(configuration, "enableSecretMutable"),
        )


def unsupported_settings(configuration: Json) -> dict[str, str]:
    """Return the settings that the simulator does not support, each with the fix."""
    found = dict[str, str]()
    if configuration.get("renderYamlToDirectory"):
        found["renderYamlToDirectory"] = "leave it unset, because objects go to an API server"
    if str(configuration.get("enableServerSideApply", "true")).lower() == "false":
        found["enableServerSideApply"] = "leave it unset, because the API server applies objects"
    return found


def _is_true(configuration: Json, name: str) -> bool:
    return str(configuration.get(name, "")).lower() == "true"


AUTONAMED = "pulumi.com/autonamed"
SKIP_AWAIT = "pulumi.com/skipAwait"
PATCH_FORCE = "pulumi.com/patchForce"
_TIMEOUT_SECONDS = "pulumi.com/timeoutSeconds"
_FIELD_MANAGER = "pulumi.com/patchFieldManager"
_PROPAGATION = "pulumi.com/deletionPropagationPolicy"

DEFAULT_TIMEOUT_SECONDS = 600.0


def annotation(obj: Json, name: str) -> str | None:
    """Return the value of an annotation, None if it is not set."""
    value = mapping(mapping(obj.get("metadata")).get("annotations")).get(name)
    return None if value is None else str(value)


def is_set(obj: Json, name: str) -> bool:
    """Whether an annotation is "true"."""
    return annotation(obj, name) == "true"


def field_manager(obj: Json) -> str | None:
    """Return the field manager that the program sets, None if it sets none."""
    return annotation(obj, _FIELD_MANAGER) or None


def timeout_seconds(obj: Json, custom: float) -> float:
    """Return the timeout for an object: customTimeouts (0: not set), otherwise the annotation, otherwise 600 s."""
    if custom > 0:
        return custom
    try:
        return float(int(annotation(obj, _TIMEOUT_SECONDS) or ""))
    except ValueError:
        return DEFAULT_TIMEOUT_SECONDS


def propagation(obj: Json) -> str:
    """Return the deletion propagation policy: the annotation, otherwise Foreground."""
    chosen = (annotation(obj, _PROPAGATION) or "").lower()
    return {"orphan": "Orphan", "background": "Background"}.get(chosen, "Foreground")


RELEASE = "kubernetes:helm.sh/v3:Release"


@dataclass(frozen=True, kw_only=True)
class ObjectKind:
    """A kind, for example apps/v1 Deployment; the apiVersion of the core group is `v1`."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


def kind_of(token: str) -> ObjectKind:
    """Return the kind of a type token, for example `kubernetes:apps/v1:Deployment`.

    Custom resources have tokens of the same form: `kubernetes:karpenter.sh/v1:NodePool`. Raises RehearsalError for
    any other token.
    """
    package, _, rest = token.partition(":")
    api_version, _, kind = rest.rpartition(":")
    group, _, version = api_version.partition("/")
    if package != "kubernetes" or not (group and version and kind):
        raise RehearsalError(
            f"type {token!r} is not simulated; use kubernetes:<group>/<version>:<ObjectKind> or {RELEASE}"
        )
    return ObjectKind(api_version=version if group == "core" else api_version, kind=kind)


def is_patch(token: str, kind: str) -> bool:
    """Whether a token is a patch of an existing object, for example `ConfigMapPatch`.

    The name of a kind can end in Patch, too, so the kind of the object decides.
    """
    return kind_of(token).kind == f"{kind}Patch"


@dataclass(frozen=True, kw_only=True)
class Naming:
    """How to name an object without a name: its logical name and the autonaming options of the engine."""

    logical_name: str
    seed: bytes = b""
    proposed: str | None = None
    disabled: bool = False


@dataclass(frozen=True, kw_only=True)
class Operation:
    """One call of the engine for one resource.

    `client` and `cancellation` end with the call. `custom_timeout` is in seconds, 0 if not set. `has_predecessor`: the
    resource exists in the state of the engine, so a create replaces it.
    """

    urn: str
    token: str
    client: KubeClient
    cancellation: Cancellation
    settings: ProviderSettings
    preview: bool = False
    has_predecessor: bool = False
    custom_timeout: float = 0.0

    @property
    def name(self) -> str:
        """The logical name of the resource."""
        return self.urn.rsplit("::", 1)[-1]


@dataclass(frozen=True, kw_only=True)
class ResourceState:
    """The state of a resource: its id (empty if it does not exist, and in a preview), outputs and inputs."""

    id: str = ""
    outputs: Properties
    inputs: Properties


GONE = ResourceState(outputs={}, inputs={})


def object_id(obj: Json) -> str:
    """Return `namespace/name`, or `name` for a cluster-scoped object."""
    metadata = mapping(obj.get("metadata"))
    namespace, name = metadata.get("namespace"), str(metadata["name"])
    return f"{namespace}/{name}" if namespace else name


def namespace_and_name(resource_id: str) -> tuple[str | None, str]:
    """Return the namespace (None: cluster scope) and the name of an id."""
    namespace, _, name = resource_id.rpartition("/")
    return namespace or None, name
