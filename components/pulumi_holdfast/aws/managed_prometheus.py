"""Amazon's managed service for Prometheus, with the metrics of jobs."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi import ComponentResource, Input, ResourceOptions
from pulumi_aws.amp import Scraper, Workspace

from pulumi_holdfast.kubernetes.job_metrics import INTERVAL, TARGETS, Target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.ladder.json import Json

_META: Final = "__meta_kubernetes"


def scrape_configuration() -> str:
    """Return the configuration of the scraper in YAML: the pods of each target, at one port."""
    configured: Json = {
        "global": {"scrape_interval": INTERVAL},
        "scrape_configs": [_job(each) for each in TARGETS],
    }
    return json.dumps(configured, indent=1)


def _job(target: Target) -> Json:
    kept = {
        f"{_META}_pod_container_port_name": target.port,
        # As Prometheus writes the key of a label.
        **{
            f"{_META}_pod_label_{re.sub(r'[^a-zA-Z0-9_]', '_', key)}": str(target.labels[key])
            for key in target.labels
        },
    }
    return {
        "job_name": target.name,
        "honor_labels": True,
        "kubernetes_sd_configs": [{"role": "pod", "namespaces": {"names": [target.namespace]}}],
        "relabel_configs": [
            *(
                {"source_labels": [label], "regex": re.escape(value), "action": "keep"}
                for label, value in kept.items()
            ),
            {"source_labels": [f"{_META}_namespace"], "target_label": "namespace"},
            {"source_labels": [f"{_META}_pod_name"], "target_label": "pod"},
        ],
    }


@dataclass(frozen=True, kw_only=True)
class ManagedPrometheusArgs:
    """The name and the ARN of the cluster, and where the scraper's network interfaces are: subnets in two zones, and a security group.

    The security group lets them reach the API server and the pods.
    """

    cluster_name: str
    cluster_arn: str
    subnet_ids: Input[Sequence[Input[str]]]
    security_group_id: Input[str]


class ManagedPrometheus(ComponentResource):
    """A workspace of Amazon's managed service for Prometheus, and its scraper (`holdfast:index:ManagedPrometheus`).

    Creates both. The service gives the scraper an access entry of the cluster, which therefore needs access entries. Depend on the
    cluster: the scraper must go first. The workspace goes with the stack, and its metrics with it.
    """

    def __init__(self, name: str, args: ManagedPrometheusArgs, opts: ResourceOptions | None = None) -> None:
        super().__init__("holdfast:index:ManagedPrometheus", name, None, opts)
        workspace = Workspace(f"{name}-workspace", alias=args.cluster_name, opts=ResourceOptions(parent=self))
        Scraper(
            f"{name}-scraper",
            alias=args.cluster_name,
            source={
                "eks": {
                    "cluster_arn": args.cluster_arn,
                    "subnet_ids": args.subnet_ids,
                    "security_group_ids": [args.security_group_id],
                }
            },
            destination={"amp": {"workspace_arn": workspace.arn}},
            scrape_configuration=scrape_configuration(),
            opts=ResourceOptions(parent=self),
        )
        self.register_outputs({})
