"""Azure Monitor's managed service for Prometheus, with the metrics of jobs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_azure_native.monitor import (
    AzureMonitorWorkspace,
    DataCollectionEndpoint,
    DataCollectionRule,
    DataCollectionRuleAssociation,
)

_STREAM: Final = "Microsoft-PrometheusMetrics"
_DESTINATION: Final = "workspace"
#: The longest names of an endpoint and of a workspace that Azure accepts.
_LONGEST: Final = 44


@dataclass(frozen=True, kw_only=True)
class AzurePrometheusArgs:
    """The cluster: its name, location, resource group and ID."""

    cluster_name: str
    location: str
    resource_group: Input[str]
    cluster_id: Input[str]


class AzurePrometheus(ComponentResource):
    """A workspace of Azure Monitor with the metrics of a cluster (`holdfast:index:AzurePrometheus`).

    Creates the workspace, and the data collection endpoint, rule and association that connect the agents of a cluster with it. The cluster's
    `azureMonitorProfile` installs these agents. The workspace goes with the stack, and its metrics with it.
    """

    def __init__(self, name: str, args: AzurePrometheusArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:AzurePrometheus", name, None, opts)
        short = args.cluster_name[:_LONGEST].rstrip("-")
        workspace = AzureMonitorWorkspace(
            f"{name}-workspace",
            azure_monitor_workspace_name=short,
            resource_group_name=args.resource_group,
            location=args.location,
            opts=ResourceOptions(parent=self),
        )
        endpoint = DataCollectionEndpoint(
            f"{name}-endpoint",
            data_collection_endpoint_name=short,
            resource_group_name=args.resource_group,
            location=args.location,
            kind="Linux",
            opts=ResourceOptions(parent=self),
        )
        collected = DataCollectionRule(
            f"{name}-rule",
            data_collection_rule_name=short,
            resource_group_name=args.resource_group,
            location=args.location,
            kind="Linux",
            data_collection_endpoint_id=endpoint.id,
            data_sources={"prometheus_forwarder": [{"name": "prometheus", "streams": [_STREAM]}]},
            destinations={
                "monitoring_accounts": [{"name": _DESTINATION, "account_resource_id": workspace.id}]
            },
            data_flows=[{"streams": [_STREAM], "destinations": [_DESTINATION]}],
            opts=ResourceOptions(parent=self),
        )
        DataCollectionRuleAssociation(
            f"{name}-association",
            association_name=short,
            resource_uri=args.cluster_id,
            data_collection_rule_id=collected.id,
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
