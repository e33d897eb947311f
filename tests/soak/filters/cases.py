"""Draws a pod and a node, and says what the checks find of them: affinity, taints, resources."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Final, TypeAlias, cast

from pulumi_holdfast.ladder.json import UNKNOWN, Json, Unknown
from pulumi_holdfast.ladder.labels import GPU_RESOURCE, ZONE
from pulumi_holdfast.ladder.reachability.affinity import ABSENT, OTHERS, any_holds
from pulumi_holdfast.ladder.reachability.node_selection import alternatives
from pulumi_holdfast.ladder.reachability.shape import EPHEMERAL_STORAGE, Resources, Shape
from pulumi_holdfast.ladder.taints import Taint, untolerated
from pulumi_holdfast.program.jobs.pod_templates import PodTemplate
from pulumi_holdfast.program.pools.pool import taint_of
from pulumi_holdfast.program.resources import Value
from tests.support.json_objects import obj, objects

#: What passes, by filter; UNKNOWN where the checks give no verdict.
Verdicts: TypeAlias = Mapping[str, bool | Unknown]

FILTERS: Final = ("affinity", "taints", "resources")

_WORDS: Final = ("a", "b", "c", "true", "")
#: At the ends of 64 bits, and in spellings that are no decimal integer.
_NUMBERS: Final = (
    *("0", "1", "2", "4", "5", "05", "10", "-1", "+5", "5.0", "1e3", "0x5", "old"),
    *("9223372036854775807", "9223372036854775808", "999999999999999999"),
)
_KEYS: Final = ("team", "example.com/rack", "generation", ZONE)
_ZONES: Final = ("z-a", "z-b", "z-c")
_TAINT_KEYS: Final = ("dedicated", "gpu", "example.com/spot")
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_NIC: Final = "example.com/nic"
_HUGE: Final = "hugepages-2Mi"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A pod, a node, and the volumes that the pod mounts, as their manifests."""

    pod: Json
    node: Json
    volumes: tuple[Json, ...]

    @classmethod
    def drawn(cls, chance: Random) -> Case:
        """A case of which each filter lets about half through."""
        volumes = tuple(_volume(chance, number) for number in range(chance.choice((0, 1, 1, 2))))
        return cls(pod=_pod(chance, len(volumes)), node=_node(chance), volumes=volumes)

    @property
    def question(self) -> Json:
        """What the judge reads."""
        return {"pod": self.pod, "node": self.node, "volumes": [*self.volumes]}

    def verdicts(self) -> Verdicts:
        """What the checks find."""
        labels = obj(obj(self.node["metadata"])["labels"])
        template = PodTemplate(name="drawn", pods=1, template=cast("Value", self.pod))
        shape = template.shape
        if not isinstance(shape, Shape):
            return dict.fromkeys(FILTERS, UNKNOWN)
        on_node = {**{key: str(value) for key, value in labels.items()}, OTHERS: ABSENT}
        terms = alternatives(replace(shape, zones=None))
        return {
            "affinity": any_holds(terms, on_node) if terms else not shape.affinity,
            "taints": not untolerated(self._taints(), shape.tolerations),
            "resources": shape.requests.fits_in(self._allocatable()),
        }

    def _taints(self) -> Sequence[Taint]:
        found = [taint_of(cast("Value", each)) for each in objects(obj(self.node["spec"])["taints"])]
        return [each for each in found if isinstance(each, Taint)]

    def _allocatable(self) -> Resources:
        there = {
            name: int(str(amount).removesuffix("m").removesuffix("Mi"))
            for name, amount in obj(obj(self.node["status"])["allocatable"]).items()
        }
        return Resources(
            cpu_millis=there["cpu"],
            memory_mib=there["memory"],
            gpus=there[GPU_RESOURCE],
            devices={name: there[name] for name in (EPHEMERAL_STORAGE, _HUGE, _NIC)},
        )


def cases(seed: int, count: int) -> tuple[Case, ...]:
    """So many cases, the same for the same seed."""
    chance = Random(f"filters-{seed}")
    return tuple(Case.drawn(chance) for _ in range(count))


def _pod(chance: Random, volumes: int) -> Json:
    selector = {key: _value(chance, key) for key in chance.sample(_KEYS, chance.choice((0, 0, 1, 1, 2)))}
    terms = [_term(chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    required: Json = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [*terms]}}
    inits = [_container(chance, is_init=True) for _ in range(chance.choice((0, 0, 1, 2)))]
    return {
        "metadata": {"name": "drawn"},
        "spec": {
            "nodeSelector": selector,
            **({"affinity": {"nodeAffinity": required}} if terms else {}),
            "tolerations": [_toleration(chance) for _ in range(chance.choice((0, 1, 1, 2, 3)))],
            "initContainers": [*inits],
            "containers": [_container(chance) for _ in range(chance.choice((1, 1, 2, 3)))],
            **({"overhead": {"cpu": "250m", "memory": "128Mi"}} if chance.random() < 0.2 else {}),
            **({"resources": _of_pod(chance)} if chance.random() < 0.15 else {}),
            "volumes": [
                {"name": f"v{number}", "persistentVolumeClaim": {"claimName": f"v{number}"}}
                for number in range(volumes)
            ],
        },
    }


def _value(chance: Random, key: str) -> str:
    if key == ZONE:
        return chance.choice(_ZONES)
    return chance.choice(_NUMBERS[:6] if key == "generation" else _WORDS)


def _term(chance: Random) -> Json:
    return {"matchExpressions": [_expression(chance) for _ in range(chance.choice((0, 1, 1, 1, 2, 2, 3)))]}


def _expression(chance: Random) -> Json:
    key, operator = (
        chance.choice(_KEYS),
        chance.choice(("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gt", "Lt")),
    )
    if operator in {"Gt", "Lt"}:
        key = chance.choice(("generation", "generation", "generation", key))
        return {"key": key, "operator": operator, "values": [chance.choice(_NUMBERS)]}
    if operator in {"Exists", "DoesNotExist"}:
        return {"key": key, "operator": operator}
    return {
        "key": key,
        "operator": operator,
        "values": [_value(chance, key) for _ in range(chance.choice((1, 2, 3)))],
    }


def _toleration(chance: Random) -> Json:
    effect = chance.choice(({}, {"effect": chance.choice(_EFFECTS)}))
    key, value = chance.choice(_TAINT_KEYS), chance.choice(("a", "b", ""))
    match chance.choice(("equal", "equal", "exists", "all", "bare", "number")):
        case "equal":
            return {"key": key, "operator": "Equal", "value": value, **effect}
        case "exists":
            return {"key": key, "operator": "Exists", **effect}
        case "all":
            return {"operator": "Exists", **(effect or {"effect": chance.choice(_EFFECTS)})}
        case "number":
            return {"key": key, "operator": chance.choice(("Gt", "Lt")), "value": "5", **effect}
        case _:
            return {"key": key, "value": value, **effect}


def _container(chance: Random, *, is_init: bool = False) -> Json:
    amounts = {
        name: _amount(chance, name, most) for name, most in _REQUESTED.items() if chance.random() < 0.6
    }
    whole = {name: str(chance.choice((1, 2, 4))) for name in (GPU_RESOURCE, _NIC) if chance.random() < 0.2}
    if _HUGE in amounts:
        # The API server wants both, and equal.
        whole[_HUGE] = amounts.pop(_HUGE)
    split = chance.choice(("requests", "requests", "limits", "both"))
    resources: Json = {
        "requests": {**(amounts if split != "limits" else {}), **whole},
        "limits": {**(amounts if split == "limits" else {}), **whole},
    }
    if split == "both":
        resources = {"requests": {**amounts, **whole}, "limits": {"cpu": "64", "memory": "512Gi", **whole}}
    always = {"restartPolicy": "Always"} if is_init and chance.random() < 0.5 else {}
    return {"name": "c", "image": "c", "resources": resources, **always}


#: What a container requests of each at most: thousandths of a CPU, MiB.
_REQUESTED: Final = {"cpu": 3000, "memory": 6144, EPHEMERAL_STORAGE: 8192, _HUGE: 512}


def _amount(chance: Random, name: str, most: int) -> str:
    """An amount in one of its spellings; huge pages and memory in whole MiB."""
    number = chance.randint(1, most)
    if name == "cpu":
        return chance.choice((f"{number}m", f"{number / 1000}", str(-(-number // 1000))))
    if name == _HUGE:
        number += number % 2
    return chance.choice(
        (f"{number}Mi", str(number * 2**20), f"{number * 1024}Ki", f"{-(-number // 1024)}Gi")
    )


def _of_pod(chance: Random) -> Json:
    amounts: Json = {"cpu": _amount(chance, "cpu", 9000), "memory": _amount(chance, "memory", 16384)}
    return chance.choice(({"requests": amounts}, {"limits": amounts}, {"requests": {"cpu": amounts["cpu"]}}))


def _node(chance: Random) -> Json:
    labels = {key: _value(chance, key) for key in _KEYS[:3] if chance.random() < 0.7}
    if chance.random() < 0.9:
        labels[ZONE] = chance.choice(_ZONES)
    taints: list[Json] = [
        {"key": key, "value": chance.choice(("a", "b", "")), "effect": chance.choice(_EFFECTS)}
        for key in chance.sample(_TAINT_KEYS, chance.choice((0, 1, 1, 2)))
    ]
    return {
        "metadata": {"name": "node", "labels": labels},
        "spec": {"taints": [*taints]},
        "status": {
            "allocatable": {
                "cpu": f"{chance.randint(1000, 9000)}m",
                "memory": f"{chance.randint(1024, 20480)}Mi",
                EPHEMERAL_STORAGE: f"{chance.randint(4096, 32768)}Mi",
                _HUGE: f"{2 * chance.randint(0, 1024)}Mi",
                GPU_RESOURCE: str(chance.choice((0, 1, 4, 8))),
                _NIC: str(chance.choice((0, 1, 4, 8))),
                "pods": "110",
            }
        },
    }


def _volume(chance: Random, number: int) -> Json:
    terms = [
        {
            "matchExpressions": [
                {"key": ZONE, "operator": "In", "values": chance.sample(_ZONES, chance.choice((1, 1, 2)))}
                for _ in range(chance.choice((1, 1, 1, 2)))
            ]
        }
        for _ in range(chance.choice((0, 1, 1, 2)))
    ]
    name = f"v{number}"
    return {
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "nfs": {"server": "files", "path": "/"},
            **({"nodeAffinity": {"required": {"nodeSelectorTerms": [*terms]}}} if terms else {}),
        },
    }
