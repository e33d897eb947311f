"""Karpenter's place in the API server's queues. Pure.

In `kube-system` it would share that of the cluster's own controllers. In a namespace of its own it waits behind every
other service account: when jobs or operators flood the API server, nodes are drained too late.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_kubernetes.flowcontrol.v1 import (
        FlowSchemaSpecArgsDict,
        ResourcePolicyRuleArgsDict,
        SubjectArgsDict,
    )


def flow_schemas(namespace: str, service_account: str) -> Mapping[str, FlowSchemaSpecArgsDict]:
    """Purpose → spec: the lease that elects a leader, and everything else."""
    subject: SubjectArgsDict = {
        "kind": "ServiceAccount",
        "service_account": {"name": service_account, "namespace": namespace},
    }
    leases: ResourcePolicyRuleArgsDict = {
        "api_groups": ["coordination.k8s.io"],
        "resources": ["leases"],
        "namespaces": [namespace],
        "verbs": ["get", "create", "update"],
    }
    everything: ResourcePolicyRuleArgsDict = {
        "api_groups": ["*"],
        "resources": ["*"],
        "namespaces": ["*"],
        "cluster_scope": True,
        "verbs": ["*"],
    }
    return {
        "leader-election": {
            "distinguisher_method": {"type": "ByUser"},
            "matching_precedence": 200,
            "priority_level_configuration": {"name": "leader-election"},
            "rules": [{"subjects": [subject], "resource_rules": [leases]}],
        },
        "workload": {
            "distinguisher_method": {"type": "ByUser"},
            "matching_precedence": 1000,
            "priority_level_configuration": {"name": "workload-high"},
            "rules": [
                {
                    "subjects": [subject],
                    "resource_rules": [everything],
                    "non_resource_rules": [{"non_resource_urls": ["*"], "verbs": ["*"]}],
                }
            ],
        },
    }
