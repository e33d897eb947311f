"""The other clusters of a stack's ladders: their addresses, and how their clouds exchange the controller's tokens.

They are read from the outputs of their stacks, or from the configuration.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.kubernetes.fallback_controller.clusters import OtherCluster
from pulumi_holdfast.kubernetes.outputs import TOKEN_EXCHANGES
from pulumi_holdfast.ladder.json import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi import Input

    from pulumi_holdfast.config.clusters import OtherClusterSection
    from pulumi_holdfast.ladder.json import Json, JsonValue


@dataclass(frozen=True, kw_only=True)
class OtherClusters:
    """`connections` are for the fallback controller. `references` are the stacks of the clusters that have one, by the names of the clusters."""

    connections: Sequence[OtherCluster]
    references: Mapping[str, pulumi.StackReference]


def other_clusters(
    sections: Sequence[OtherClusterSection], *, issuer: Input[str] = "", parent: pulumi.Resource
) -> OtherClusters:
    """Read the stacks of other clusters for the cluster `parent`; `issuer` is that of its tokens."""
    references = {
        each.name: pulumi.StackReference(
            naming.other_stack(parent.pulumi_resource_name, each.name),
            each.stack,
            opts=pulumi.ResourceOptions(parent=parent),
        )
        for each in sections
        if each.stack is not None
    }
    return OtherClusters(
        connections=[_connection(each, references.get(each.name), issuer) for each in sections],
        references=references,
    )


def _connection(
    section: OtherClusterSection, reference: pulumi.StackReference | None, issuer: Input[str]
) -> OtherCluster:
    if reference is None:
        return OtherCluster(
            name=section.name,
            server=section.server or "",
            certificate_authority=section.certificate_authority or "",
        )
    kubeconfig = cast("pulumi.Output[str]", reference.require_output("kubeconfig"))
    return OtherCluster(
        name=section.name,
        server=kubeconfig.apply(server_of),
        certificate_authority=kubeconfig.apply(certificate_authority_of),
        exchange=pulumi.Output.all(reference.get_output(TOKEN_EXCHANGES), issuer).apply(
            lambda known: _exchange(section.name, *cast("tuple[JsonValue, str]", tuple(known)))
        ),
    )


def _exchange(cluster: str, exchanges: JsonValue, issuer: str) -> Json:
    """How the cluster's cloud exchanges tokens of an issuer, with a warning if it does not; empty for a cluster that takes them as they are."""
    if exchanges is None:
        return {}
    found = mapping(mapping(exchanges).get(issuer))
    if not found:
        pulumi.log.warn(
            f'cluster "{cluster}": its stack does not accept jobs of this one. Add `{{name: …, issuer: "{issuer}", namespaces: […]}}` '
            "to acceptsFrom there, and update it."
        )
    return found


def server_of(kubeconfig: str) -> str:
    """The address of the API server in a stack's output `kubeconfig`."""
    return str(_cluster_in(kubeconfig)["server"])


def certificate_authority_of(kubeconfig: str) -> str:
    """The certificates that sign the API server's certificate, in base64; empty if public authorities do."""
    return str(_cluster_in(kubeconfig).get("certificate-authority-data", ""))


def _cluster_in(kubeconfig: str) -> Json:
    document = cast("Json", json.loads(kubeconfig))
    (entry,) = sequence(document["clusters"])
    return mapping(mapping(entry)["cluster"])
