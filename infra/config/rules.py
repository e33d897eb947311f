"""Rules across fields: what no single value shows to be wrong. Pure; each yields the problems it finds."""

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from typing import Final

from infra import versions
from infra.config.parts import Parts, read_parts
from infra.config.platform import TierSection
from infra.config.problems import shown
from scheduling.errors import Problem
from scheduling.json import JsonValue
from scheduling.labels import CapacityType
from scheduling.ladder import tier_problems
from scheduling.machines import Machine
from scheduling.pools import Pool
from scheduling.taints import GPU, SPOT, Taint

RESERVED_NAMESPACES: Final = frozenset({"default", "jobset-system", "karpenter", "kuberay-system"})


def repeated_names(names: Mapping[int, str], what: str, at: str) -> Iterator[Problem]:
    """Two of one name: neither a job's selector nor a ladder could tell them apart."""
    first: dict[str, int] = {}
    for index, name in names.items():
        if first.setdefault(name, index) != index:
            yield Problem(
                field=f"{at}[{index}].name",
                value=f"{shown(name)}, already the name of {at}[{first[name]}],",
                allowed=f"a name that no other {what} has",
                mend=f"Rename one of the two, such as {shown(f'{name}-2')}, or remove it.",
            )


def reserved_names(names: Mapping[int, str], at: str) -> Iterator[Problem]:
    """Training namespaces that would be made in a place of Kubernetes' or an operator's."""
    for index, name in names.items():
        if name in RESERVED_NAMESPACES or name.startswith("kube-"):
            yield Problem(
                field=f"{at}[{index}].name",
                value=shown(name),
                allowed=f"any name but {', '.join(sorted(RESERVED_NAMESPACES))} and those that start with kube-",
                mend=f'Write another, such as "training-{name}".',
            )


def instance_types(
    types: Sequence[str], catalogue: Mapping[str, Machine], source: str, at: str
) -> Iterator[Problem]:
    """Types that are not in the catalogue, twice in a pool, or with GPUs beside others without."""
    for index, name in enumerate(types):
        if name not in catalogue:
            close = get_close_matches(name, catalogue, n=1)
            yield Problem(
                field=f"{at}[{index}]",
                value=shown(name),
                allowed=f"the instance types in {source}: {', '.join(catalogue)}",
                mend=f'Write "{close[0]}".' if close else f"Choose one of them, or describe it in {source}.",
            )
        elif name in types[:index]:
            yield Problem(
                field=f"{at}[{index}]",
                value=f"{shown(name)} a second time",
                allowed="each instance type once",
                mend="Remove one of the two.",
            )
    known = [catalogue[name] for name in types if name in catalogue]
    if len({machine.gpus > 0 for machine in known}) > 1:
        yield Problem(
            field=at,
            value=", ".join(f"{machine.name} with {machine.gpus} GPUs" for machine in known),
            allowed="machines that all have GPUs or all have none, because the pool's taint speaks for all of them",
            mend="Make two pools of it.",
        )


def default_pool(pools: Mapping[int, Pool], *, all_were_read: bool, at: str) -> Iterator[Problem]:
    """Exactly one pool takes the pods that ask for nothing, and it must be one on which they may run."""
    defaults = {index: pool for index, pool in pools.items() if pool.is_default}
    fitting = [pool.name for pool in pools.values() if _may_be_default(pool)]
    if not defaults and all_were_read:
        yield Problem(
            field=at,
            value="no pool with default: true",
            allowed="exactly one, on-demand and without GPUs, for pods that ask for nothing",
            mend=f"Add default: true to {fitting[0]}."
            if fitting
            else "Add `{name: cpu, capacity: on-demand, instanceTypes: [m7i.xlarge], maxNodes: 20, default: true}`.",
        )
    for index in list(defaults)[1:]:
        yield Problem(
            field=f"{at}[{index}].default",
            value=f"true on a second pool, {pools[index].name},",
            allowed=f"true on exactly one pool; {next(iter(defaults.values())).name} has it",
            mend="Remove default from one of them.",
        )
    for index, pool in defaults.items():
        if not _may_be_default(pool):
            kind = f"{pool.capacity.value}{' with GPUs' if pool.has_gpus else ''}"
            yield Problem(
                field=f"{at}[{index}].default",
                value=f"true on a pool that is {kind}",
                allowed="true on an on-demand pool without GPUs, because pods that ask for nothing tolerate no taint",
                mend=f"Move default: true to {fitting[0]}."
                if fitting
                else "Add an on-demand pool without GPUs.",
            )


def _may_be_default(pool: Pool) -> bool:
    return pool.capacity is CapacityType.ON_DEMAND and not pool.has_gpus


def ladders(
    namespaces: JsonValue, pools: Mapping[str, Pool], unread: frozenset[str], at: str
) -> Iterator[Problem]:
    """Ladders that cannot be walked to their end."""
    for index, entry in enumerate(namespaces if isinstance(namespaces, list | tuple) else ()):
        ladder = entry.get("ladder") if isinstance(entry, Mapping) else None
        if isinstance(ladder, list | tuple):
            tiers: Parts[TierSection] = read_parts(TierSection, ladder)
            yield from tier_problems(
                {place: tier.as_tier() for place, tier in tiers.items.items()},
                tiers.count,
                pools,
                f"{at}[{index}].ladder",
                unread_pools=unread,
            )


def kubernetes_version(cluster: JsonValue, supported: str, at: str) -> Iterator[Problem]:
    """A version without MutatingAdmissionPolicy v1, or another than the one this cloud can give."""
    version = cluster.get("version") if isinstance(cluster, Mapping) else None
    if not isinstance(version, str) or version == supported:
        return
    too_old = _minor(version) is not None and (_minor(version) or 0) < (
        _minor(versions.OLDEST_KUBERNETES) or 0
    )
    yield Problem(
        field=f"{at}.version",
        value=shown(version),
        allowed=f'"{supported}"',
        mend=f'Write "{supported}". {_by_hand() if too_old else ""}'.strip(),
    )


def _minor(version: str) -> int | None:
    major, _, minor = version.partition(".")
    return int(minor) if major == "1" and minor.isascii() and minor.isdigit() else None


def _by_hand() -> str:
    def line(taint: Taint) -> str:
        return "{" + ", ".join(f"{key}: {value}" for key, value in taint.as_toleration().items()) + "}"

    return (
        f"An older one cannot add tolerations (MutatingAdmissionPolicy is v1 since {versions.OLDEST_KUBERNETES}); "
        f"jobs for such a cluster must carry them by hand: {line(SPOT)} to run on spot, {line(GPU)} with GPUs."
    )
