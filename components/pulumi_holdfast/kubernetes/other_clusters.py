"""Tiers of a ladder in another cluster: what one stack exports and another reads."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final, cast

import pulumi

from pulumi_holdfast.config import naming
from pulumi_holdfast.config.clusters import ACCEPTS_FROM
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.reachability import shapes_of
from pulumi_holdfast.kubernetes.fallback_controller.clusters import OtherCluster
from pulumi_holdfast.kubernetes.operators.device_plugins import registries_of
from pulumi_holdfast.kubernetes.outputs import TOKEN_EXCHANGES
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.json import mapping, sequence
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.reachability.checks import Failed
from pulumi_holdfast.ladder.reachability.elsewhere import check_checkpoints
from pulumi_holdfast.ladder.reachability.facts import TierFacts, read_exported, read_pool_facts
from pulumi_holdfast.ladder.reachability.walk import check_tier

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pulumi import Input, Output

    from pulumi_holdfast.config.clusters import AcceptedClusterSection, OtherClusterSection
    from pulumi_holdfast.config.namespace import NamespaceSection, TierSection
    from pulumi_holdfast.ladder.json import Json, JsonValue
    from pulumi_holdfast.ladder.reachability.pool_summary import PoolSummary


def all_users(users: Mapping[str, Sequence[Input[str]]]) -> Sequence[Input[str]]:
    """The users of every other cluster."""
    return [user for each in users.values() for user in each]


def users_in(
    namespace: str, accepted: Sequence[AcceptedClusterSection], users: Mapping[str, Sequence[Input[str]]]
) -> Sequence[Input[str]]:
    """The users of the clusters whose jobs may run in a namespace, by the cluster's name."""
    return [user for each in accepted if namespace in each.namespaces for user in users[each.name]]


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


#: The beginning of the addresses of checkpoints in the stores of each cloud.
SCHEMES: Final = {"AWS": "s3://", "Google Cloud": "gs://", "Azure": "abfss://"}

#: What is left for jobs that cannot use the store of their home.
USE_OTHER_STORE: Final = (
    "Leave checkpoints out, and give the program the address of a store that both clusters reach."
)


@dataclass(frozen=True, kw_only=True)
class Home:
    """The stack whose store an entry of `acceptsFrom` names, and the path of the field that names it."""

    stack: str
    field: str
    reference: pulumi.StackReference

    def output(self, name: str) -> Output[JsonValue]:
        """An output of the stack; None if it has none of this name."""
        return cast("Output[JsonValue]", self.reference.get_output(name))

    def refusal(self, value: str, *, allowed: str, fix: str) -> pulumi.RunError:
        """The error, which the engine shows as one message, for a stack whose store jobs here cannot use."""
        named = f"{format_value(self.stack)}, {value}"
        return pulumi.RunError(str(Problem(field=self.field, value=named, allowed=allowed, fix=fix)))


@dataclass(frozen=True, kw_only=True)
class HomeCheckpoints:
    """Where the jobs of a namespace keep their checkpoints: at an address in the store of their home's stack."""

    home: Home
    uri: Output[str]


def home_checkpoints(
    accepted: Sequence[AcceptedClusterSection], cloud: str, *, parent: pulumi.Resource
) -> Mapping[str, HomeCheckpoints]:
    """Return the checkpoints at home, by namespace, of the jobs that keep them there; `cloud` is that of the cluster `parent`.

    A home on another cloud stops the program once its outputs are known.
    """
    found: dict[str, HomeCheckpoints] = {}
    for index, entry in enumerate(accepted):
        if entry.checkpoints is None:
            continue
        home = Home(
            stack=entry.checkpoints,
            field=f"{ACCEPTS_FROM}[{index}].checkpoints",
            reference=pulumi.StackReference(
                naming.home_checkpoints(parent.pulumi_resource_name, entry.name),
                entry.checkpoints,
                opts=pulumi.ResourceOptions(parent=parent),
            ),
        )
        uris = home.output("checkpointUris")
        for namespace in entry.namespaces:
            uri = uris.apply(partial(address_at_home, home=home, namespace=namespace, cloud=cloud))
            found[namespace] = HomeCheckpoints(home=home, uri=uri)
    return found


def address_at_home(uris: JsonValue, *, home: Home, namespace: str, cloud: str) -> str:
    """The address of a namespace's checkpoints, of all that a stack exports. Raises pulumi.RunError for one of another cloud."""
    uri = mapping(uris).get(namespace)
    if isinstance(uri, str) and uri.startswith(SCHEMES[cloud]):
        return uri
    exported = f"the address {format_value(uri)}" if uri else "no address"
    raise home.refusal(
        f"which exports {exported} for the namespace {namespace}",
        allowed=f"a stack on {cloud} with this namespace: jobs here use addresses that start with {SCHEMES[cloud]}",
        fix=f"Update that stack, or write another one; or {USE_OTHER_STORE[0].lower()}{USE_OTHER_STORE[1:]}",
    )


def bucket_in(uri: str) -> str:
    """The name of the bucket in an `s3://` or `gs://` address."""
    return uri.partition("://")[2].partition("/")[0]
