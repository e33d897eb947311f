"""The clouds that a stack can use: for each, its parser, its training cluster, and its provider packages.

The modules of a cloud are imported only for a stack on that cloud, so that a user of one cloud installs one SDK.
"""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final, Generic, TypeAlias, TypeVar

from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from pulumi import Resource, ResourceOptions

    from pulumi_holdfast.aws.config.sections import AwsPlatform
    from pulumi_holdfast.azure.config.sections import AzurePlatform
    from pulumi_holdfast.config.preflight import QuotaUse, Runner
    from pulumi_holdfast.gcp.config.sections import GcpPlatform
    from pulumi_holdfast.kubernetes.outputs import ClusterOutputs
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary
    from pulumi_holdfast.local.config.sections import LocalPlatform

    #: The parsed configuration of any stack.
    Platform: TypeAlias = LocalPlatform | AwsPlatform | AzurePlatform | GcpPlatform
    #: Raises ConfigError for a stack that must not be composed.
    Check: TypeAlias = Callable[[Platform], None]

P = TypeVar("P", bound="Platform")

#: Values of a stack outside its document, under a provider's own keys (`aws:region`). None: not set.
Settings: TypeAlias = "Mapping[str, str | None]"


def _always_reachable(document: Json, settings: Settings, stack: str) -> None:
    """For clouds whose API servers are reachable from anywhere, or whose errors have the reason."""


@dataclass(frozen=True, kw_only=True)
class Cloud(Generic[P]):
    """A cloud as the program uses it.

    `read` parses a stack's document and raises ConfigError with every problem. `make` makes the training cluster of that name and
    environment and returns its outputs; None for a cluster without any. Both get the stack's values under the keys of `settings`;
    `provider_settings` asks the provider of a component for them. `provider_packages` are the Pulumi providers that its stacks use.
    `missing_command` reports a credential plugin that clients of a cluster need and that is not installed. `unreachable_api_server`
    reports an existing cluster whose API server does not answer. `quota_uses` compares the quotas of the account with the demand of
    the stack of that name, through the cloud's command line.
    """

    provider_packages: tuple[str, ...]
    read: Callable[[Json, Settings], P]
    make: Callable[[str, P, str, Settings, ResourceOptions | None], ClusterOutputs | None]
    provider_settings: Callable[[Resource], Settings] = lambda _: {}
    settings: tuple[str, ...] = ()
    missing_command: Callable[[], Problem | None] = lambda: None
    unreachable_api_server: Callable[[Json, Settings, str], Problem | None] = _always_reachable
    quota_uses: Callable[[Json, Settings, str, Runner], Sequence[QuotaUse]] | None = None

    def build(
        self,
        document: Json,
        settings: Settings,
        environment: str,
        check: Check,
        *,
        name: str = "main",
        opts: ResourceOptions | None = None,
    ) -> ClusterOutputs | None:
        """Parse a document, check it, and make its training cluster, whose resources' names begin with `name`. Raises ConfigError."""
        platform = self.read(document, settings)
        check(platform)
        return self.make(name, platform, environment, settings, opts)


AnyCloud: TypeAlias = "Cloud[LocalPlatform] | Cloud[AwsPlatform] | Cloud[AzurePlatform] | Cloud[GcpPlatform]"


def pool_summaries(platform: Platform) -> Mapping[str, PoolSummary]:
    """The summary of each pool of a stack, by name."""
    if platform.cloud == "local":
        from pulumi_holdfast.local.training_cluster import pool_summaries as local_summaries

        return local_summaries(platform)
    if platform.cloud == "aws":
        from pulumi_holdfast.aws.pools import pool_summaries as aws_summaries

        return aws_summaries(platform)
    if platform.cloud == "azure":
        from pulumi_holdfast.azure.pools import pool_summaries as azure_summaries

        return azure_summaries(platform)
    from pulumi_holdfast.gcp.pools import pool_summaries as gcp_summaries

    return gcp_summaries(platform)


def _read_local(document: Json, _: Settings) -> LocalPlatform:
    from pulumi_holdfast.local.config.sections import read_local_platform

    return read_local_platform(document)


def _make_local(
    name: str, platform: LocalPlatform, stack: str, _: Settings, opts: ResourceOptions | None
) -> None:
    from pulumi_holdfast.local.training_cluster import TrainingCluster, TrainingClusterArgs

    TrainingCluster(name, TrainingClusterArgs(platform=platform, environment=stack), opts)


_AWS_REGION: Final = "aws:region"
_AWS_PROFILE: Final = "aws:profile"
_AWS_ROLES: Final = "aws:assumeRoles"


def _read_aws(document: Json, settings: Settings) -> AwsPlatform:
    from pulumi_holdfast.aws.config.rules import read_aws_platform

    return read_aws_platform(document, settings.get(_AWS_REGION), assume_roles=settings.get(_AWS_ROLES))


def _make_aws(
    name: str, platform: AwsPlatform, stack: str, settings: Settings, opts: ResourceOptions | None
) -> ClusterOutputs:
    from pulumi_holdfast.aws.control_plane.access import Caller
    from pulumi_holdfast.aws.training_cluster import TrainingCluster, TrainingClusterArgs

    # An empty profile is no profile: the AWS CLI would only report that it cannot find it.
    caller = Caller(profile=settings.get(_AWS_PROFILE) or None, role_arn=platform.role_arn)
    args = TrainingClusterArgs(platform=platform, environment=stack, caller=caller)
    return TrainingCluster(name, args, opts).outputs


def _aws_settings(component: Resource) -> Settings:
    from pulumi_holdfast.aws.preflight.queries import provider_region

    return {_AWS_REGION: provider_region(component)}


def _missing_aws_command() -> Problem | None:
    from pulumi_holdfast.aws.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


def _aws_quota_uses(document: Json, settings: Settings, stack: str, runner: Runner) -> Sequence[QuotaUse]:
    from pulumi_holdfast.aws.preflight.quotas import quota_uses

    return quota_uses(_read_aws(document, settings), stack, runner)


_AZURE_LOCATION: Final = "azure-native:location"
_AZURE_SUBSCRIPTION: Final = "azure-native:subscriptionId"
_AZURE_TENANT: Final = "azure-native:tenantId"


def _read_azure(document: Json, settings: Settings) -> AzurePlatform:
    from pulumi_holdfast.azure.config.rules import read_azure_platform

    return read_azure_platform(
        document,
        location=settings.get(_AZURE_LOCATION),
        subscription_id=settings.get(_AZURE_SUBSCRIPTION),
        tenant_id=settings.get(_AZURE_TENANT),
    )


def _make_azure(
    name: str, platform: AzurePlatform, stack: str, _: Settings, opts: ResourceOptions | None
) -> ClusterOutputs:
    from pulumi_holdfast.azure.training_cluster import TrainingCluster, TrainingClusterArgs

    return TrainingCluster(name, TrainingClusterArgs(platform=platform, environment=stack), opts).outputs


def _azure_settings(component: Resource) -> Settings:
    from pulumi_holdfast.azure.preflight.queries import provider_account

    subscription, tenant = provider_account(component)
    return {_AZURE_SUBSCRIPTION: subscription, _AZURE_TENANT: tenant}


def _missing_azure_command() -> Problem | None:
    from pulumi_holdfast.azure.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


def _unreachable_azure_api_server(document: Json, settings: Settings, stack: str) -> Problem | None:
    from pulumi_holdfast.azure.preflight.queries import unreachable_api_server

    return unreachable_api_server(_read_azure(document, settings), stack)


def _azure_quota_uses(document: Json, settings: Settings, stack: str, runner: Runner) -> Sequence[QuotaUse]:
    from pulumi_holdfast.azure.preflight.quotas import subscription_quota_uses

    return subscription_quota_uses(_read_azure(document, settings), stack, runner)


_GCP_PROJECT: Final = "gcp:project"
_GCP_REGION: Final = "gcp:region"


def _read_gcp(document: Json, settings: Settings) -> GcpPlatform:
    from pulumi_holdfast.gcp.config.rules import read_gcp_platform

    return read_gcp_platform(document, project=settings.get(_GCP_PROJECT), region=settings.get(_GCP_REGION))


def _make_gcp(
    name: str, platform: GcpPlatform, stack: str, _: Settings, opts: ResourceOptions | None
) -> ClusterOutputs:
    from pulumi_holdfast.gcp.training_cluster import TrainingCluster, TrainingClusterArgs

    return TrainingCluster(name, TrainingClusterArgs(platform=platform, environment=stack), opts).outputs


def _gcp_settings(component: Resource) -> Settings:
    from pulumi_holdfast.gcp.preflight.queries import provider_place

    project, region = provider_place(component)
    return {_GCP_PROJECT: project, _GCP_REGION: region}


def _missing_gcp_command() -> Problem | None:
    from pulumi_holdfast.gcp.preflight.checks import credential_plugin_problem

    return credential_plugin_problem()


def _gcp_quota_uses(document: Json, settings: Settings, stack: str, runner: Runner) -> Sequence[QuotaUse]:
    from pulumi_holdfast.gcp.preflight.quotas import project_quota_uses

    return project_quota_uses(_read_gcp(document, settings), stack, runner)


CLOUDS: Final[Mapping[str, AnyCloud]] = {
    "local": Cloud(provider_packages=("kubernetes",), read=_read_local, make=_make_local),
    "aws": Cloud(
        provider_packages=("aws", "kubernetes"),
        read=_read_aws,
        make=_make_aws,
        provider_settings=_aws_settings,
        settings=(_AWS_REGION, _AWS_PROFILE, _AWS_ROLES),
        missing_command=_missing_aws_command,
        quota_uses=_aws_quota_uses,
    ),
    "azure": Cloud(
        provider_packages=("azure-native", "kubernetes"),
        read=_read_azure,
        make=_make_azure,
        provider_settings=_azure_settings,
        settings=(_AZURE_LOCATION, _AZURE_SUBSCRIPTION, _AZURE_TENANT),
        missing_command=_missing_azure_command,
        unreachable_api_server=_unreachable_azure_api_server,
        quota_uses=_azure_quota_uses,
    ),
    "gcp": Cloud(
        provider_packages=("gcp", "kubernetes"),
        read=_read_gcp,
        make=_make_gcp,
        provider_settings=_gcp_settings,
        settings=(_GCP_PROJECT, _GCP_REGION),
        missing_command=_missing_gcp_command,
        quota_uses=_gcp_quota_uses,
    ),
}


def cloud_of(document: JsonValue) -> tuple[AnyCloud, Json]:
    """The cloud that a stack's document names, with the document.

    Raises ConfigError if there is no document, or if it names no known cloud.
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
        allowed="a mapping of cloud, pools, namespaces and the cloud's other fields",
        fix="Start from stacks/Pulumi.local.yaml. Run in the project's directory and select the stack with -s.",
    )


def _unknown_cloud(document: Json) -> Problem:
    name = document.get("cloud", next((each for each in document.values() if each in (*CLOUDS,)), None))
    close = get_close_matches(name.lower(), CLOUDS, n=1) if isinstance(name, str) else []
    return Problem(
        field=f"{PLATFORM}.cloud",
        value=format_value(name) if "cloud" in document else "nothing",
        allowed=", ".join(CLOUDS),
        fix=f"Write `cloud: {(close or list(CLOUDS))[0]}`.",
    )
