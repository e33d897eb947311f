"""Validates the clusters whose jobs a stack accepts, for every cloud."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pulumi_holdfast.config.clusters import AcceptedClusterSection
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.loader import PLATFORM, read_parts
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.validation import duplicate_name_problems, training_namespace_problems
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import Json

ACCEPTS_FROM: Final = f"{PLATFORM}.acceptsFrom"


def accepted_cluster_problems(document: Json) -> Iterator[Problem]:
    """Namespaces that a document does not have, and names, issuers or namespaces that two clusters share."""
    namespaces = read_parts(NamespaceSection, document.get("namespaces"))
    accepted = read_parts(AcceptedClusterSection, document.get("acceptsFrom", []))
    yield from duplicate_name_problems(accepted.names, "cluster", ACCEPTS_FROM)
    issuers: dict[str, int] = {}
    homes: dict[str, int] = {}
    for index, cluster in accepted.items.items():
        at = f"{ACCEPTS_FROM}[{index}]"
        yield from training_namespace_problems(cluster.namespaces, namespaces, f"{at}.namespaces")
        if issuers.setdefault(cluster.issuer, index) != index:
            yield Problem(
                field=f"{at}.issuer",
                value=f"{format_value(cluster.issuer)}, also the issuer of {ACCEPTS_FROM}[{issuers[cluster.issuer]}]",
                allowed="each cluster once",
                fix="Write all its namespaces in one entry.",
            )
        for namespace in cluster.namespaces:
            first = homes.setdefault(namespace, index)
            if first != index:
                yield Problem(
                    field=f"{at}.namespaces",
                    value=f"{namespace}, also in {ACCEPTS_FROM}[{first}]",
                    allowed="each namespace once: its copies are not protected from the controller of another home",
                    fix="Accept the jobs of one of the two in another namespace.",
                )
