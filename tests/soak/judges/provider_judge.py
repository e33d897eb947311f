"""Judges drawn stacks by the plans of the real Terraform provider, where its binary is on this machine."""

import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.rehearsal.engine.values import UNKNOWN
from tests.soak.judges.combinations import Combination, plain
from tests.soak.judges.field_changes import FieldChange, field_changes, is_replaced, named
from tests.soak.judges.plans import PROVIDERS, Inputs, Planned, Planner, Subject
from tests.support.fakes.pulumi_engine import Recorded

#: Where the providers' binaries are looked for; git ignores the folder.
FOLDER: Final = Path(__file__).parents[3] / ".tools/judges"


@dataclass(frozen=True, kw_only=True)
class PlanVerdict:
    """What a provider says: the summary, and what is wrong."""

    summary: Sequence[str]
    wrong: Sequence[str]


def binary_name(cloud: str) -> str:
    """Return the name of a provider's binary."""
    return f"terraform-provider-{PROVIDERS[cloud][0].partition('/')[2]}"


def provider_of(cloud: str) -> Path | None:
    """Return the provider's binary, None where this machine has none, or no `terraform` to run it."""
    file = FOLDER / binary_name(cloud)
    return file if file.is_file() and shutil.which("terraform") else None


def judge(cloud: str, combinations: Sequence[Combination], binary: Path) -> PlanVerdict:
    """Plan what stacks register and a change of each field."""
    with tempfile.TemporaryDirectory(prefix="holdfast-plans-") as folder:
        planner = Planner(cloud, binary, Path(folder))
        judged, wrong = _new_resources(planner, combinations)
        compared, otherwise = _changes(planner, [one for each in combinations for one in each.known])
    return PlanVerdict(summary=[judged, compared], wrong=[*wrong, *otherwise])


def _new_resources(planner: Planner, combinations: Sequence[Combination]) -> tuple[str, list[str]]:
    subjects: dict[str, Subject] = {}
    titles: list[str] = []
    for each in combinations:
        known = {(one.type, one.name): named(one) for one in each.known}
        for ids, resources in (("known", each.known), ("unknown", each.unknown)):
            for one in resources:
                # In a preview under mocks an output that only the cloud computes is absent.
                later = known.get((one.type, one.name)) if ids == "unknown" else None
                inputs = plain({**dict.fromkeys(later or (), UNKNOWN), **named(one)})
                subject = Subject(token=one.type, inputs=cast("Inputs", inputs))
                if (key := _key(subject)) not in subjects:
                    subjects[key] = subject
                    titles.append(f"{each.name} ({ids} ids): {one.name}")
    verdicts = planner.plan([*subjects.values()])
    wrong = [f"{titles[number]}: {message}" for number, message in sorted(verdicts.refused.items())]
    return f"  {planner.title} plans {len(verdicts.plans)} of {len(subjects)} different resources", wrong


def _changes(planner: Planner, resources: Iterable[Recorded]) -> tuple[str, list[str]]:
    found = list(field_changes(resources))
    created = _created(planner, found)
    subjects = {
        number: Subject(token=one.token, inputs=one.new, before=before)
        for number, one in enumerate(found)
        if (before := created.get(_key(_original(one)))) is not None
    }
    plans = planner.plan([*subjects.values()]).plans
    counted: Counter[str] = Counter(refused=len(found) - len(plans))
    wrong: list[str] = []
    for at, number in enumerate(subjects):
        if at in plans:
            wrong += _compared(found[number], plans[at], counted)
    paths = len({(one.token, one.path) for one in found})
    summary = (
        f"  {len(found)} changes of {paths} fields: {counted['in place']} in place, {counted['replaced']} replaced, "
        f"{counted['none']} without an effect, {counted['refused']} refused by the provider; the simulator replaces "
        f"{counted['stricter']} that are removed without an effect, and differs in {len(wrong)}"
    )
    return summary, wrong


def _created(planner: Planner, found: Iterable[FieldChange]) -> Mapping[str, Inputs]:
    """Return the values of each resource after its creation, without those that a second plan would replace."""
    originals = {_key(one): one for one in map(_original, found)}
    keys, subjects = list(originals), list(originals.values())
    plans = planner.plan(subjects).plans
    made = {keys[at]: planner.made(subjects[at].token, plan) for at, plan in plans.items()}
    again = [
        Subject(token=originals[key].token, inputs=originals[key].inputs, before=before)
        for key, before in made.items()
    ]
    same = {at for at, plan in planner.plan(again).plans.items() if not plan.is_replaced}
    return {key: before for at, (key, before) in enumerate(made.items()) if at in same}


def _compared(change: FieldChange, planned: Planned, counted: Counter[str]) -> list[str]:
    effect = "replaced" if planned.is_replaced else "in place" if planned.changes_something else "none"
    counted[effect] += 1
    if planned.is_replaced == is_replaced(change):
        return []
    # A field that the provider keeps, or whose default is this value: the rehearsal is the stricter.
    if change.removes and effect == "none":
        counted["stricter"] += 1
        return []
    where = "the provider" if planned.is_replaced else "the simulator"
    return [f"{change.token} {change.path}: only {where} replaces the resource ({effect})"]


def _original(change: FieldChange) -> Subject:
    return Subject(token=change.token, inputs=change.old)


def _key(subject: Subject) -> str:
    return json.dumps([subject.token, subject.inputs], default=str, sort_keys=True)
