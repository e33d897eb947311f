"""Tiers in other clusters: what the stacks of those clusters export about them, for the FallbackPolicy and as warnings.

The policy pack cannot read another stack, so the FallbackPolicy has what it judges by. An update of the other stack shows here
with the next preview or update of this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import pulumi

from pulumi_holdfast.config.reachability import shapes_of
from pulumi_holdfast.kubernetes.operators.device_plugins import registries_of
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import Failed
from pulumi_holdfast.ladder.reachability.elsewhere import check_checkpoints
from pulumi_holdfast.ladder.reachability.facts import TierFacts
from pulumi_holdfast.ladder.reachability.stored_facts import read_exported, read_pool_facts
from pulumi_holdfast.ladder.reachability.walk import check_tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulumi import Input, Output

    from pulumi_holdfast.config.namespace import NamespaceSection, TierSection
    from pulumi_holdfast.ladder.json import Json
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary

#: The outputs that are read.
_READ: Final = ("pools", "ladders", "checkpointUris", "network")


@dataclass(frozen=True, kw_only=True)
class OtherStacks:
    """The stacks of other clusters, by the names of the clusters. `region` is where the checkpoints of this stack are."""

    references: Mapping[str, pulumi.StackReference]
    region: str


def exported_tiers(
    namespace: NamespaceSection,
    others: OtherStacks,
    *,
    checkpoint_uri: Input[str],
    pools: Mapping[str, PoolSummary],
) -> Mapping[tuple[str, str], Output[Json]]:
    """Return the fields that the tiers of a namespace in other clusters get, by cluster and pool, and warn of what is wrong with them.

    `checkpoint_uri` and `pools` are this stack's.
    """
    found: dict[tuple[str, str], Output[Json]] = {}
    for number, tier in enumerate(namespace.ladder, start=1):
        reference = others.references.get(tier.cluster or "")
        if reference is None:
            continue
        outputs = {each: reference.get_output(each) for each in _READ}
        read = cast("Output[Json]", pulumi.Output.all(stack=reference.name, **outputs))
        fields = read.apply(
            partial(exported_fields, namespace=namespace.name, pool=tier.pool, region=others.region)
        )
        found[tier.cluster or "", tier.pool] = fields
        judged = cast("Output[tuple[Json, str]]", pulumi.Output.all(fields, checkpoint_uri))
        judged.apply(partial(_warn, namespace, number, tier, pools))
    return found


def _warn(
    namespace: NamespaceSection,
    number: int,
    tier: TierSection,
    pools: Mapping[str, PoolSummary],
    judged: tuple[Json, str],
) -> None:
    fields, uri = judged
    for warning in tier_warnings(namespace, number, tier, fields, checkpoint_uri=uri, pools=pools):
        pulumi.log.warn(warning)


def exported_fields(found: Json, *, namespace: str, pool: str, region: str) -> Json:
    """Return the fields of a tier from the outputs of its stack by name, and `stack`; none if the stack was not updated yet.

    `region` is where the checkpoints of this stack are. The gateway endpoint of an isolated network leads to buckets of its own
    region only, and so does that of its registries.
    """
    pools, network = mapping(found.get("pools")), mapping(found.get("network"))
    if not pools:
        return {}
    ladder = mapping(found.get("ladders")).get(namespace)
    uri = mapping(found.get("checkpointUris")).get(namespace)
    facts = mapping(mapping(pools.get(pool)).get("facts"))
    isolated, there = network.get("isolated") is True, network.get("region")
    return {
        "exported": {
            "stack": found.get("stack"),
            **({} if ladder is None else {"ladder": [*sequence(ladder)]}),
            **({} if uri is None else {"checkpoints": uri}),
            **({"reachesCheckpoints": not isolated or there == region} if network else {}),
            **({"registry": registries_of(str(there))} if isolated else {}),
        },
        **({"facts": facts} if facts else {}),
    }


def tier_warnings(
    namespace: NamespaceSection,
    number: int,
    tier: TierSection,
    fields: Json,
    *,
    checkpoint_uri: str,
    pools: Mapping[str, PoolSummary],
) -> Iterator[str]:
    """Yield why jobs of a namespace cannot use a tier in another cluster, or why that is not known."""
    exported = read_exported(mapping(fields.get("exported")), home_checkpoints=checkpoint_uri)
    facts = mapping(fields.get("facts"))
    there = TierFacts(
        number=number,
        pool=tier.pool,
        has_timeout=tier.procurement_timeout is not None,
        node_pools=(read_pool_facts(tier.pool, facts),) if facts else (),
        cluster=tier.cluster or "",
        exported=exported,
    )
    results = [
        *(each for shape in shapes_of(namespace, pools) for each in check_tier(shape, there, is_last=False)),
        *(() if exported is None else check_checkpoints(exported)),
    ]
    title = messages.tier_title(number, tier.pool, there.cluster)
    for result in dict.fromkeys(results):
        fix = f". {result.fix}" if isinstance(result, Failed) and result.fix else ""
        yield f"namespace {namespace.name!r}: {title}: {result.reason}{fix}"
