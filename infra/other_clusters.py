"""The other clusters of a stack's ladders: their addresses, read from the outputs of their stacks or from the configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import pulumi

from holdfast.components.fallback_controller.clusters import OtherCluster
from holdfast.scheduling.json import mapping, sequence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from holdfast.infra.config.clusters import OtherClusterSection
    from holdfast.scheduling.json import Json


@dataclass(frozen=True, kw_only=True)
class OtherClusters:
    """`connections` are for the fallback controller. `references` are the stacks of the clusters that have one, by the names of the clusters."""

    connections: Sequence[OtherCluster]
    references: Mapping[str, pulumi.StackReference]


def other_clusters(sections: Sequence[OtherClusterSection]) -> OtherClusters:
    """Read the stacks of other clusters."""
    references = {each.name: pulumi.StackReference(each.stack) for each in sections if each.stack is not None}
    return OtherClusters(
        connections=[_connection(each, references.get(each.name)) for each in sections], references=references
    )


def _connection(section: OtherClusterSection, reference: pulumi.StackReference | None) -> OtherCluster:
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
    )


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
