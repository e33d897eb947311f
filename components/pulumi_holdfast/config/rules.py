"""The rules on the parsed configuration of every cloud: pools and their machines, reservations, namespaces, other clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Final, TypeVar

from pulumi_holdfast.config.clusters import ACCEPTS_FROM, CLUSTERS, AcceptedClusterSection
from pulumi_holdfast.config.errors import format_value
from pulumi_holdfast.config.fields import Section
from pulumi_holdfast.config.loader import PLATFORM
from pulumi_holdfast.config.namespace import NamespaceSection
from pulumi_holdfast.config.sections import ExistingCluster, PlatformDocument, PoolSection, ReservationSection
from pulumi_holdfast.config.versions import version_problem
from pulumi_holdfast.ladder.errors import Problem
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE, CapacityType
from pulumi_holdfast.ladder.ladder_rules import ladder_problems, timing_problems
from pulumi_holdfast.ladder.machines import Machine, family_of, is_sold_in, machine_catalogue, regions_of
from pulumi_holdfast.ladder.operators import OPERATORS
from pulumi_holdfast.ladder.pools import Pool
from pulumi_holdfast.ladder.quantities import format_duration
from pulumi_holdfast.ladder.quotas import quota_problems
from pulumi_holdfast.ladder.reachability.shape import shape_problems
from pulumi_holdfast.ladder.taints import Taint
from pulumi_holdfast.ladder.windows import format_time

POOLS: Final = f"{PLATFORM}.pools"
NAMESPACES: Final = f"{PLATFORM}.namespaces"
NETWORK: Final = f"{PLATFORM}.network"
CLUSTER: Final = f"{PLATFORM}.cluster"
CHECKPOINTS: Final = f"{PLATFORM}.checkpoints"

RESERVED_NAMESPACES: Final = frozenset(
    {CONTROLLER_NAMESPACE, RESERVATION_NAMESPACE, "default", *(each.namespace for each in OPERATORS.values())}
)

S = TypeVar("S", bound=PoolSection)
H = TypeVar("H", bound=Hashable)


def repeated(items: Sequence[H]) -> Iterator[tuple[int, int]]:
    """The index of each item that is there before, and the index of the first."""
    for index, item in enumerate(items):
        first = items.index(item)
        if first != index:
            yield index, first


def duplicate_problems(names: Sequence[str], at: str, what: str) -> Iterator[Problem]:
    """Duplicates in a list."""
    for index, _ in repeated(names):
        got = f"{format_value(names[index])}, a duplicate"
        yield Problem(f"{at}[{index}]", got, f"each {what} once", "Remove one of the two.")


def duplicate_name_problems(names: Sequence[str], what: str, at: str) -> Iterator[Problem]:
    """Duplicate names: neither a job's node selector nor a ladder could distinguish them."""
    for index, first in repeated(names):
        got = f"{format_value(names[index])}, also the name of {at}[{first}]"
        fix = f"Rename one of the two, such as {format_value(f'{names[index]}-2')}, or remove it."
        yield Problem(f"{at}[{index}].name", got, f"a name that no other {what} uses", fix)


def pool_and_ladder_problems(
    platform: PlatformDocument,
    pools: Sequence[S],
    *,
    problems_of: Callable[[S, str], Iterator[Problem]],
    as_pool: Callable[[S], Pool],
    a_default_pool: str,
) -> Iterator[Problem]:
    """The problems of a platform's pools, of each and of all together, of its namespaces, and of other clusters.

    `problems_of` yields the problems of one pool at a path. While a pool's machines are wrong, the rules that depend on them
    do not run. `a_default_pool` is an example of a pool that may be the default, in YAML.
    """
    yield from duplicate_name_problems([pool.name for pool in pools], "pool", POOLS)
    wrong: set[str] = set()
    for index, pool in enumerate(pools):
        found = list(problems_of(pool, f"{POOLS}[{index}]"))
        yield from found
        wrong |= {pool.name} if found else set()
    clear = [as_pool(pool) for pool in pools if pool.name not in wrong]
    if not wrong:
        yield from _default_pool(clear, a_default_pool)
    names = [namespace.name for namespace in platform.namespaces]
    yield from duplicate_name_problems(names, "training namespace", NAMESPACES)
    for index, namespace in enumerate(platform.namespaces):
        yield from _namespace(namespace, clear, wrong, f"{NAMESPACES}[{index}]")
        yield from _unlisted_clusters(namespace, platform, f"{NAMESPACES}[{index}].ladder")
    yield from _other_clusters(platform)


def _default_pool(pools: Sequence[Pool], example: str) -> Iterator[Problem]:
    """Exactly one pool is the default for pods without tolerations, and it must have no taint."""
    candidates = [pool.name for pool in pools if _may_be_default(pool)]
    defaults = [index for index, pool in enumerate(pools) if pool.is_default]
    fitting = [index for index in defaults if _may_be_default(pools[index])]
    if not defaults:
        allowed = "exactly one, on-demand and without GPUs, for pods that name no pool"
        fix = f"Add default: true to {candidates[0]}." if candidates else f"Add `{example}`."
        yield Problem(POOLS, "no pool with default: true", allowed, fix)
    for index in fitting[1:]:
        got = f"true on a second pool, {pools[index].name}"
        allowed = f"true on exactly one pool; {pools[fitting[0]].name} has it"
        yield Problem(f"{POOLS}[{index}].default", got, allowed, "Remove default from one of the two.")
    for index in set(defaults) - set(fitting):
        kind = f"{pools[index].capacity.value}{' with GPUs' if pools[index].has_gpus else ''}"
        allowed = "true on an on-demand pool without GPUs, because pods that name no pool tolerate no taint"
        fix = f"Write it on {candidates[0]} instead." if candidates else f"Add `{example}`."
        yield Problem(f"{POOLS}[{index}].default", f"true on a pool that is {kind}", allowed, fix)


def _may_be_default(pool: Pool) -> bool:
    return pool.capacity is CapacityType.ON_DEMAND and not pool.has_gpus


def _namespace(
    namespace: NamespaceSection, pools: Sequence[Pool], wrong: Set[str], at: str
) -> Iterator[Problem]:
    name, ladder, shapes = namespace.name, namespace.as_ladder(), namespace.as_shapes()
    if name in RESERVED_NAMESPACES or name.startswith("kube-"):
        allowed = f"any name but {', '.join(sorted(RESERVED_NAMESPACES))} and those that start with kube-"
        fix = f'Write another name, such as "training-{name}".'
        yield Problem(f"{at}.name", format_value(name), allowed, fix)
    if wrong.isdisjoint(namespace.pools_here):
        yield from ladder_problems(ladder, pools, f"{at}.ladder")
    yield from timing_problems(ladder, f"{at}.fallback")
    yield from duplicate_name_problems(
        [shape.name for shape in shapes], "shape of the namespace", f"{at}.shapes"
    )
    yield from shape_problems(shapes, f"{at}.shapes")
    on_gpus = any(pool.has_gpus for pool in pools if pool.name in namespace.pools_here)
    yield from quota_problems(namespace.quota.as_asked(), shapes, f"{at}.quota", on_gpus=on_gpus)


def _unlisted_clusters(namespace: NamespaceSection, platform: PlatformDocument, at: str) -> Iterator[Problem]:
    """The tiers of a ladder in clusters that are not in the list."""
    listed = [cluster.name for cluster in platform.clusters]
    for index, tier in enumerate(namespace.ladder):
        if tier.cluster is not None and tier.cluster not in listed:
            added = f"Add `{{name: {tier.cluster}, stack: ORGANIZATION/PROJECT/STACK}}` to {CLUSTERS}, or remove cluster."
            allowed = f"the clusters in {CLUSTERS}: {', '.join(listed) or 'it has none'}"
            fix = close_fix(tier.cluster, listed, added)
            yield Problem(f"{at}[{index}].cluster", format_value(tier.cluster), allowed, fix)


def close_fix(name: str, known: Collection[str], otherwise: str) -> str:
    """The fix of a name that is not known: the closest one."""
    close = get_close_matches(name, known, n=1)
    return f'Write "{close[0]}".' if close else otherwise


def _other_clusters(platform: PlatformDocument) -> Iterator[Problem]:
    """The clusters that have both a stack and a server, or neither, or the stack of another one."""
    clusters = platform.clusters
    yield from duplicate_name_problems([cluster.name for cluster in clusters], "cluster", CLUSTERS)
    for index, first in repeated([cluster.stack or str(index) for index, cluster in enumerate(clusters)]):
        got = f"{format_value(clusters[index].stack)} a second time"
        fix = f"Write the name of cluster [{first}] on the tiers, and remove this cluster."
        yield Problem(f"{CLUSTERS}[{index}].stack", got, "each stack once", fix)
    for index, cluster in enumerate(clusters):
        if cluster.stack is None and cluster.server is None:
            fix = "Write stack for a stack of Holdfast; or server, with certificateAuthority."
            yield Problem(f"{CLUSTERS}[{index}]", "neither stack nor server", "one of the two", fix)
        elif cluster.stack is not None and (cluster.server or cluster.certificate_authority):
            field = f"{CLUSTERS}[{index}].{'server' if cluster.server else 'certificateAuthority'}"
            got = "a value beside stack"
            allowed = "nothing: the outputs of the stack have the address and the certificates"
            fix = "Leave it out."
            yield Problem(field, got, allowed, fix)


def training_namespace_problems(
    names: Sequence[str], namespaces: Sequence[NamespaceSection], at: str
) -> Iterator[Problem]:
    """Names in a list that are none of the stack's training namespaces, or are there twice."""
    yield from duplicate_problems(names, at, "namespace")
    known = [namespace.name for namespace in namespaces]
    for index, name in enumerate(names):
        if name not in known:
            allowed = f"a training namespace of this stack: {', '.join(known) or 'it has none'}"
            fix = close_fix(name, known, "Write one of them, or add it to namespaces.")
            yield Problem(f"{at}[{index}]", format_value(name), allowed, fix)


def accepted_cluster_problems(
    accepted: Sequence[AcceptedClusterSection], namespaces: Sequence[NamespaceSection]
) -> Iterator[Problem]:
    """Namespaces that a stack does not have, and names, issuers or namespaces that two clusters share."""
    yield from duplicate_name_problems([cluster.name for cluster in accepted], "cluster", ACCEPTS_FROM)
    for index, first in repeated([cluster.issuer for cluster in accepted]):
        got = f"{format_value(accepted[index].issuer)}, also the issuer of {ACCEPTS_FROM}[{first}]"
        fix = "Write all its namespaces in one entry."
        yield Problem(f"{ACCEPTS_FROM}[{index}].issuer", got, "each cluster once", fix)
    homes: dict[str, int] = {}
    for index, cluster in enumerate(accepted):
        at = f"{ACCEPTS_FROM}[{index}].namespaces"
        yield from training_namespace_problems(cluster.namespaces, namespaces, at)
        for namespace in cluster.namespaces:
            first = homes.setdefault(namespace, index)
            if first != index:
                allowed = (
                    "each namespace once: its copies are not protected from the controller of another home"
                )
                fix = "Accept the jobs of one of the two in another namespace."
                yield Problem(at, f"{namespace}, also in {ACCEPTS_FROM}[{first}]", allowed, fix)


def cloud_prefix_problems(
    namespaces: Sequence[NamespaceSection], prefixes: tuple[str, ...], cloud: str
) -> Iterator[Problem]:
    """Namespaces with a prefix that a cloud uses for its own."""
    for index, namespace in enumerate(namespaces):
        if namespace.name.startswith(prefixes):
            allowed = (
                f"a name that does not start with {' or '.join(prefixes)}, which {cloud} uses for its own"
            )
            fix = f'Write another name, such as "training-{namespace.name}".'
            yield Problem(f"{NAMESPACES}[{index}].name", format_value(namespace.name), allowed, fix)


@dataclass(frozen=True, kw_only=True)
class TagRules:
    """What a cloud allows in the keys and values of tags, as patterns and in words; `own` are the beginnings of others' keys."""

    key: str
    value: str
    allowed: str
    own: tuple[str, ...]


def tag_problems(tags: Mapping[str, str], cloud: TagRules) -> Iterator[Problem]:
    """Tags that a cloud would reject, or that belong to Holdfast or to the cloud."""
    for key, value in tags.items():
        at = f"{PLATFORM}.tags.{key}"
        if key.lower().startswith(cloud.own):
            allowed = f"a key that does not start with {', '.join(cloud.own)}, which others use"
            yield Problem(at, format_value(value), allowed, "Write another key.")
        elif not re.fullmatch(cloud.key, key, re.ASCII) or not re.fullmatch(cloud.value, value, re.ASCII):
            yield Problem(at, format_value(value), cloud.allowed, "Leave out the other characters.")


def minor_version_problems(version: str, taints: tuple[Taint, ...]) -> Iterator[Problem]:
    """A version without the admission policies for `taints`, or with a patch number, which the cloud chooses."""
    field, minor = f"{CLUSTER}.version", ".".join(version.split(".")[:2])
    wrong = version_problem(field, version, taints)
    if wrong:
        yield wrong
    elif version != minor:
        allowed = "a minor version: the cloud chooses the patch"
        yield Problem(field, format_value(version), allowed, f'Write "{minor}".')


def network_beside_existing_problems(
    cluster: object,
    network: Section,
    new: type[Section] | tuple[type[Section], ...],
    fields: tuple[str, ...] = (),
    others: tuple[str, ...] = (),
) -> Iterator[Problem]:
    """A network beside an existing cluster that does not consist of `fields`, those of an existing network.

    `new` are the sections that are not allowed there; `others` may stand beside the fields.
    """
    if not isinstance(cluster, ExistingCluster):
        return
    listed = " and ".join(fields)
    if isinstance(network, new):
        allowed = f"nothing{f', or {listed}' if fields else ''}: the cluster has a network"
        fix = "Leave it out: the stack uses the cluster's network." + (
            f" To choose its subnets, write {listed}." if fields else ""
        )
        yield Problem(NETWORK, "a new network beside an existing cluster", allowed, fix)
        return
    given = {str(type(network).model_fields[name].alias) for name in network.model_fields_set}
    for extra in sorted(given - {*fields, *others}):
        allowed = f"{listed} beside an existing cluster"
        yield Problem(f"{NETWORK}.{extra}", "a field of a new cluster's network", allowed, "Leave it out.")


def reservation_problems(
    capacity: CapacityType, sources: Mapping[str, Section | None], at: str, *, example: str
) -> Iterator[Problem]:
    """The problems of a pool's source of reserved capacity.

    `sources` are the fields that name one, with their values; `example` is one of them in YAML.
    """
    given = [name for name, source in sources.items() if source is not None]
    listed = " or ".join(sources)
    if capacity is not CapacityType.RESERVED:
        for name in given:
            got = f"a value on a pool that is {capacity.value}"
            fix = f"Write capacity: reserved, or remove {name}."
            yield Problem(f"{at}.{name}", got, f"{name} on a pool with capacity: reserved", fix)
    elif len(given) != 1:
        got = f"capacity: reserved with {' and '.join(given) or f'no {listed}'}"
        fix = f"Add `{example}`." if not given else "Remove all but one of them; one pool has one source."
        yield Problem(at, got, f"exactly one source of reserved capacity: {listed}", fix)
    for name in given:
        source = sources[name]
        if isinstance(source, ReservationSection):
            yield from _reservation_times(source, f"{at}.{name}.ends")


def _reservation_times(reservation: ReservationSection, field: str) -> Iterator[Problem]:
    window, ends = reservation.window, reservation.ends
    if ends is None or window.ends is None:
        return
    early = format_duration(reservation.taken_back_early)
    if window.begins is not None and window.begins >= window.ends:
        got = f'"{format_time(ends)}", less than {early} after begins, "{format_time(window.begins)}"'
        allowed = f"a time more than {early} after begins, because jobs leave {early} before the end"
        yield Problem(field, got, allowed, "Write both times as the cloud shows them for the reservation.")
    elif window.is_over(datetime.now(UTC)):
        got = f'"{format_time(ends)}", which is over for jobs since {format_time(window.ends)}'
        allowed = f"a time more than {early} from now, because jobs leave {early} before the end"
        fix = "Write the reservation that follows it, or remove the pool and its tiers."
        yield Problem(field, got, allowed, fix)


@dataclass(frozen=True, kw_only=True)
class MachineMarket:
    """The machine types that a stack may use: `here`, those of its region, and the texts of problems about others.

    `what` is the cloud's term for a machine type, `elsewhere` has those of other regions, `setting` is the key of the region.
    """

    here: Mapping[str, Machine]
    allowed: str
    fix: str
    what: str = "instance type"
    elsewhere: Mapping[str, Machine] = field(default_factory=dict[str, Machine])
    setting: str = ""
    region: str = ""


def market_of(cloud: str, region: str, *, what: str, setting: str, command: str) -> MachineMarket:
    """The machine types of a region; `command` lists them."""
    catalogue = machine_catalogue(cloud)
    here = {name: machine for name, machine in catalogue.items() if is_sold_in(name, region)}
    return MachineMarket(
        here=here,
        allowed=f"one of the {len(here)} {what}s that {region} offers",
        fix=f"Write one that `{command}` lists.",
        what=what,
        elsewhere={name: machine for name, machine in catalogue.items() if name not in here},
        setting=setting,
        region=region,
    )


def machine_problems(types: Sequence[str], market: MachineMarket, at: str) -> Iterator[Problem]:
    """Types that do not exist or that the region does not offer, duplicates, and machines with and without GPUs."""
    yield from duplicate_problems(types, at, market.what)
    for index, name in enumerate(types):
        if name not in market.here:
            yield unknown_machine_problem(name, market, f"{at}[{index}]")
    yield from mixed_gpu_problems([market.here[name] for name in types if name in market.here], at)


_MOST_REGIONS_SHOWN: Final = 6


def unknown_machine_problem(name: str, market: MachineMarket, field: str) -> Problem:
    """The problem of a machine type that a region does not offer, with the one that it offers instead."""
    close = nearest_machine(name, market)
    if name not in market.elsewhere:
        fix = f'Write "{close}".' if close else market.fix
        return Problem(field=field, value=format_value(name), allowed=market.allowed, fix=fix)
    sellers = sorted(regions_of(name))
    more = len(sellers) - _MOST_REGIONS_SHOWN
    shown = ", ".join(sellers[:_MOST_REGIONS_SHOWN]) + (f" and {more} more" if more > 0 else "")
    meant = f'"{close}"' if close else f"another {market.what}"
    return Problem(
        field=field,
        value=f"{format_value(name)}, which {market.region} does not offer",
        allowed=f"{market.allowed}; this one only in {shown}",
        fix=f"Write {meant}, or change {market.setting}.",
    )


#: Less alike names are of other clouds.
_CLOSE: Final = 0.7


def nearest_machine(name: str, market: MachineMarket) -> str | None:
    """The machine type of a region that is closest to a name, and may replace it."""
    meant = name.lower()
    # Azure's portal omits the prefix of a VM size.
    same = next(
        (one for one in market.here if one.lower() == meant or one.lower().endswith(f"_{meant}")), None
    )
    if same is not None:
        return same
    of_gpu = [each for each in market.here.values() if meant in (each.accelerator or "").split("-")]
    if of_gpu:
        # A pool of GPUs is meant by the name of the GPU.
        return min(of_gpu, key=lambda each: (each.hourly_price / each.gpus, each.name)).name
    by_lower_case = {one.lower(): one for one in replacements(name, market)}
    close = get_close_matches(meant, by_lower_case, n=1, cutoff=_CLOSE)
    return by_lower_case[close[0]] if close else None


def replacements(name: str, market: MachineMarket) -> Mapping[str, Machine]:
    """The machines of a region that may replace one of this name or of this family.

    They have its architecture, and GPUs if it has them; for an unknown family the architecture of most images, unless the
    family's letters say the other.
    """
    family = _family(name)
    known = [*market.here.items(), *market.elsewhere.items()]
    meant = next((machine for one, machine in known if _family(one) in {family, name.lower()}), None)
    if meant is not None:
        kind = (meant.arch, meant.gpus > 0)
        return {one: each for one, each in market.here.items() if (each.arch, each.gpus > 0) == kind}
    return {
        one: each
        for one, each in market.here.items()
        if each.arch == "amd64" or set(_family(one)) <= set(family)
    }


def _family(name: str) -> str:
    """`m7i` of m7i.large, `n2` of n2-standard-4, `dds_v5` of Standard_D4ds_v5: as its cloud names it, in lower case."""
    return (family_of(name) or name.rpartition(".")[0] or name.partition("-")[0]).lower()


def mixed_gpu_problems(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines with and without GPUs in one pool."""
    if len({machine.gpus > 0 for machine in machines}) > 1:
        got = ", ".join(f"{machine.name} with {machine.gpus} GPUs" for machine in machines)
        allowed = (
            "machines that all have GPUs or all have none, because the pool's taint applies to all of them"
        )
        yield Problem(at, got, allowed, "Write two pools instead.")


def mixed_architecture_problems(machines: Sequence[Machine], at: str) -> Iterator[Problem]:
    """Machines of several architectures in one pool."""
    architectures = sorted({machine.arch for machine in machines})
    if len(architectures) > 1:
        allowed = "machines of one architecture, because a job's image supports one"
        yield Problem(at, f"machines of {' and '.join(architectures)}", allowed, "Write two pools instead.")


def machine_selection_problems(
    pool: Section, named: tuple[str, str], parts: Mapping[str, str], at: str
) -> Iterator[Problem]:
    """A pool with no machine types, with two ways to select them, or with half of one.

    `named` is the field of a list of names, `parts` are the fields that select by properties and belong together; each
    with an example.
    """
    given = pool.model_dump(by_alias=True, exclude_none=True)
    field, example = named
    ways = f"either {field}, or {' and '.join(parts)}"
    there = [part for part in parts if part in given]
    if field in given and there:
        got = f"{' and '.join(there)} in addition to {field}"
        yield Problem(f"{at}.{there[0]}", got, ways, "Remove one of the two.")
    elif field not in given and not there:
        others = " and ".join(f"`{part}: {written}`" for part, written in parts.items())
        fix = f"Add `{field}: {example}`, or {others}."
        yield Problem(f"{at}.{field}", "nothing", ways, fix)
    elif field not in given:
        for part in parts.keys() - given.keys():
            fix = f"Add `{part}: {parts[part]}`."
            yield Problem(f"{at}.{part}", "nothing", ways, fix)


def system_machine_problems(
    machine: Machine, field: str, *, example: str, fewest_vcpus: int = 0, least_mib: int = 0
) -> Iterator[Problem]:
    """A machine type of the system nodes with GPUs, or too small for the operators."""
    what, fix = f"{format_value(machine.name)}, which has", f"Write, for example, {example}."
    if machine.gpus:
        allowed = "machines without GPUs, because only operators and the cloud's services run here"
        yield Problem(field, f"{what} {machine.gpus} GPUs", allowed, fix)
    elif machine.vcpus < fewest_vcpus or machine.memory_mib < least_mib:
        size = f"{what} {machine.vcpus} vCPUs and {machine.memory_mib} MiB"
        allowed = f"machines of {fewest_vcpus} vCPUs and {least_mib} MiB or more"
        yield Problem(field, size, allowed, fix)


def one_zone_problems(zones: Sequence[str], field: str, why: str, fix: str) -> Iterator[Problem]:
    """A pool that is not in exactly one zone, as `why` says that it must be."""
    if len(zones) != 1:
        value = f"{len(zones) or 'all'} zones"
        yield Problem(field, value, f"one zone, because {why}", fix)
