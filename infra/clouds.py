"""The clouds a stack can be on: for each one its parser, its composition root and the provider packages it uses.

What is one cloud's alone is imported only when a stack is on it: a user of one cloud installs, and imports, one SDK.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, TypeAlias

from holdfast.infra.config.errors import format_value
from holdfast.infra.config.loader import PLATFORM
from holdfast.scheduling.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.infra.azure.config.stack import AzurePlatform
    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.infra.local.config.stack import LocalPlatform
    from holdfast.scheduling.json import Json, JsonValue

    #: The parsed configuration of any stack.
    Platform: TypeAlias = LocalPlatform | AwsPlatform | AzurePlatform | GcpPlatform

#: Values of a stack that stand beside its document, under a provider's own keys (`aws:region`); None: not set.
Settings: TypeAlias = "Mapping[str, str | None]"


def _within_reach(document: Json, settings: Settings, stack: str) -> None:
    """For clouds whose clusters answer from anywhere, or say why not by themselves."""


@dataclass(frozen=True, kw_only=True)
class Cloud:
    """A cloud as the program sees it.

    `read` parses a stack's document and raises ConfigError with every problem; `build` does the same, then composes
    the stack of that name. Both are given the stack's values under the keys of `settings`. `provider_packages` are
    the Pulumi providers its stacks use. `missing_command` tells of a command that is not here and without which
    nobody gets into a cluster of this cloud; `out_of_reach` of a stack's cluster that is there and cannot be reached.
    """

    provider_packages: tuple[str, ...]
    read: Callable[[Json, Settings], Platform]
    build: Callable[[Json, Settings, str], None]
    settings: tuple[str, ...] = ()
    missing_command: Callable[[], Problem | None] = lambda: None
    out_of_reach: Callable[[Json, Settings, str], Problem | None] = _within_reach


def _read_local(document: Json, _: Settings) -> LocalPlatform:
    from holdfast.infra.local.config.validation import read_local_platform

    return read_local_platform(document)


def _build_local(document: Json, settings: Settings, stack: str) -> None:
    platform = _read_local(document, settings)
    from holdfast.infra.local.stack import compose

    compose(platform, stack)


_AWS_REGION: Final = "aws:region"
_AWS_PROFILE: Final = "aws:profile"


def _read_aws(document: Json, settings: Settings) -> AwsPlatform:
    from holdfast.infra.aws.config.validation import read_aws_platform

    return read_aws_platform(document, settings.get(_AWS_REGION))


def _build_aws(document: Json, settings: Settings, stack: str) -> None:
    platform = _read_aws(document, settings)
    from holdfast.infra.aws.stack import compose

    # Of a profile without a name the AWS CLI says only that it could not be found.
    compose(platform, stack, settings.get(_AWS_PROFILE) or None)


def _missing_aws_command() -> Problem | None:
    from holdfast.infra.aws.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


_AZURE_LOCATION: Final = "azure-native:location"
_AZURE_SUBSCRIPTION: Final = "azure-native:subscriptionId"
_AZURE_TENANT: Final = "azure-native:tenantId"


def _read_azure(document: Json, settings: Settings) -> AzurePlatform:
    from holdfast.infra.azure.config.validation import read_azure_platform

    return read_azure_platform(
        document,
        location=settings.get(_AZURE_LOCATION),
        subscription_id=settings.get(_AZURE_SUBSCRIPTION),
        tenant_id=settings.get(_AZURE_TENANT),
    )


def _build_azure(document: Json, settings: Settings, stack: str) -> None:
    platform = _read_azure(document, settings)
    from holdfast.infra.azure.stack import compose

    compose(platform, stack)


def _missing_azure_command() -> Problem | None:
    from holdfast.infra.azure.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


def _azure_out_of_reach(document: Json, settings: Settings, stack: str) -> Problem | None:
    from holdfast.infra.azure.preflight.queries import unreachable_api_server

    return unreachable_api_server(_read_azure(document, settings), stack)


_GCP_PROJECT: Final = "gcp:project"
_GCP_REGION: Final = "gcp:region"


def _read_gcp(document: Json, settings: Settings) -> GcpPlatform:
    from holdfast.infra.gcp.config.validation import read_gcp_platform

    return read_gcp_platform(document, project=settings.get(_GCP_PROJECT), region=settings.get(_GCP_REGION))


def _build_gcp(document: Json, settings: Settings, stack: str) -> None:
    platform = _read_gcp(document, settings)
    from holdfast.infra.gcp.stack import compose

    compose(platform, stack)


def _missing_gcp_command() -> Problem | None:
    from holdfast.infra.gcp.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


CLOUDS: Final[Mapping[str, Cloud]] = {
    "local": Cloud(provider_packages=("kubernetes",), read=_read_local, build=_build_local),
    "aws": Cloud(
        provider_packages=("aws", "kubernetes"),
        read=_read_aws,
        build=_build_aws,
        settings=(_AWS_REGION, _AWS_PROFILE),
        missing_command=_missing_aws_command,
    ),
    "azure": Cloud(
        provider_packages=("azure-native", "kubernetes"),
        read=_read_azure,
        build=_build_azure,
        settings=(_AZURE_LOCATION, _AZURE_SUBSCRIPTION, _AZURE_TENANT),
        missing_command=_missing_azure_command,
        out_of_reach=_azure_out_of_reach,
    ),
    "gcp": Cloud(
        provider_packages=("gcp", "kubernetes"),
        read=_read_gcp,
        build=_build_gcp,
        settings=(_GCP_PROJECT, _GCP_REGION),
        missing_command=_missing_gcp_command,
    ),
}


def cloud_of(document: JsonValue) -> tuple[Cloud, Json]:
    """The cloud that a stack's document names, and the document.

    Raises ConfigError where there is no document, or none of the clouds known here in it.
    """
    if not isinstance(document, dict):
        raise ConfigError([_no_document(document)])
    name = document.get("cloud")
    if not isinstance(name, str) or name not in CLOUDS:
        raise ConfigError([_unknown_cloud(document)])
    return CLOUDS[name], document


def _no_document(document: JsonValue) -> Problem:
    return Problem(
        field=PLATFORM,
        value="nothing" if document is None else format_value(document),
        allowed="a mapping of cloud, pools, namespaces and what else the cloud has",
        fix="Start from stacks/Pulumi.local.yaml; run from the project's folder and name the stack with -s.",
    )


def _unknown_cloud(document: Json) -> Problem:
    name = document.get("cloud")
    close = get_close_matches(name.lower(), CLOUDS, n=1) if isinstance(name, str) else []
    return Problem(
        field=f"{PLATFORM}.cloud",
        value=format_value(name) if "cloud" in document else "nothing",
        allowed=", ".join(CLOUDS),
        fix=f"Write `cloud: {(close or list(CLOUDS))[0]}`.",
    )
