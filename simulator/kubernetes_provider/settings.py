"""The configuration of one instance of the provider, as far as a rehearsal heeds it."""

from dataclasses import dataclass

from holdfast.scheduling.json import Json

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
