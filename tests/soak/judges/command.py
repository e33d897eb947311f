"""`python -m tests.soak judges`: judges what drawn stacks register, by what others publish."""

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.rehearsal.clouds.catalogue import catalogue_of
from pulumi_holdfast.rehearsal.clouds.schema import Schema, violations
from pulumi_holdfast.rehearsal.engine.values import UNKNOWN, Properties
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from tests.soak.judges import replacing
from tests.soak.judges.combinations import Combination, draw, plain
from tests.soak.judges.plans import PROVIDERS
from tests.soak.judges.planted import mistakes
from tests.soak.judges.provider_judge import FOLDER, binary_name, judge, provider_of
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.published import Published

#: The packages of the three clouds.
_CLOUDS: Final = ("aws", "gcp", "azure-native")
_NOT_PLANNED: Final = (
    "the real provider plans nothing: put `terraform` on PATH and {} into {}, as docs/judges.md says"
)


def judges(*, seed: int | None, count: int) -> None:
    """Judge `count` stacks of each cloud, with known and with unknown ids, and print a summary.

    Raises RehearsalError if a judge disagrees with a resource.
    """
    first = seed_of(seed, os.environ.get(SEED_VARIABLE))
    say(f"seed {first}: {count} stacks of each cloud, each with known and with unknown ids")
    verdicts = [_Verdict(cloud) for cloud in _CLOUDS]
    for verdict in verdicts:
        for number, combination in enumerate(draw(verdict.cloud, seed=first, count=count), start=1):
            verdict.add(combination)
            say(f"  {verdict.cloud} {number}/{count}: {combination.name}, {len(verdict.wrong)} complaints")
    for verdict in verdicts:
        verdict.add_plans()
        for line in verdict.summary():
            say(line)
    wrong = [complaint for verdict in verdicts for complaint in verdict.wrong]
    if wrong:
        raise RehearsalError("\n".join([f"{len(wrong)} complaints:", *wrong]))
    say("every judge agrees")


def compare_replacing(sources: Path) -> int:
    """Print what replaces a resource of Azure in the simulator or in the list of the provider, and not in both.

    Returns the exit code: 1 for a difference.
    """
    simulated = catalogue_of("azure-native").resources
    found = replacing.replaced_otherwise(sources.read_text(encoding="utf-8"), simulated)
    for line in found:
        say(line)
    say(f"{len(found)} differences in the types of the simulator")
    return int(bool(found))


class _Verdict:
    """What the judges of a cloud said."""

    def __init__(self, cloud: str) -> None:
        self.cloud = cloud
        self.wrong: list[str] = []
        self._sdk = Schema.for_package(cloud)
        self._published = Published.of(cloud)
        self._resources: Counter[str] = Counter()
        self._fields: set[tuple[str, str]] = set()
        self._seen: set[str] = set()
        self._planted: Counter[str] = Counter()
        self._found: Counter[str] = Counter()
        self._combinations: list[Combination] = []
        self._plans: Sequence[str] = ()

    def add(self, combination: Combination) -> None:
        """Judge the resources of a stack; equal ones are judged once."""
        self._combinations.append(combination)
        known = {(one.type, one.name): one.inputs for one in combination.known}
        for title, resources in (("known", combination.known), ("unknown", combination.unknown)):
            for one in resources:
                self._resources[title] += 1
                self._fields |= {(one.type, name) for name in one.inputs}
                self._judge(one, f"{combination.name} ({title} ids)", known if title == "unknown" else None)

    def add_plans(self) -> None:
        """Judge all stacks by the provider's plans, where this machine has the provider."""
        if self.cloud not in PROVIDERS:
            return
        binary = provider_of(self.cloud)
        if binary is None:
            self._plans = [f"  {_NOT_PLANNED.format(binary_name(self.cloud), FOLDER)}"]
            return
        found = judge(self.cloud, self._combinations, binary)
        self._plans = found.summary
        self.wrong += found.wrong

    def summary(self) -> list[str]:
        """Return the lines that a person reads at the end."""
        types = {token for token, _ in self._fields}
        published = f"{len(self._published.types)} types of {self._published.source}"
        judged = (
            f"{self.cloud}: {len(self._combinations)} stacks, {self._resources.total()} resources of {len(types)} types "
            f"({self._resources['unknown']} with unknown ids), {len(self._fields)} fields, "
            f"{len(self.wrong)} complaints; judged by pulumi-{self.cloud} {self._sdk.version} and {published}"
        )
        lines = [judged, *self._plans]
        if self._planted:
            shares = ", ".join(
                f"{kind} {self._found[kind]}/{planted}" for kind, planted in sorted(self._planted.items())
            )
            lines.append(f"  planted mistakes seen: {self._found.total()}/{self._planted.total()} ({shares})")
        return lines

    def _judge(
        self, one: Recorded, where: str, later: Mapping[tuple[str, str], Mapping[str, object]] | None
    ) -> None:
        key = f"{one.type} {json.dumps(one.inputs, default=str, sort_keys=True)}"
        if key in self._seen:
            return
        self._seen.add(key)
        # In a preview under mocks an output that only the cloud computes is absent, where the engine has an unknown value.
        pending = dict.fromkeys((later or {}).get((one.type, one.name), {}), UNKNOWN)
        given = {**pending, **{name: value for name, value in one.inputs.items() if value is not None}}
        self.wrong += [f"{where}: {one.name}: {complaint}" for complaint in self._complaints(one.type, given)]
        if later is None:
            for mistake in mistakes(one.inputs):
                self._planted[mistake.kind] += 1
                self._found[mistake.kind] += bool(self._complaints(one.type, mistake.inputs))

    def _complaints(self, token: str, inputs: Mapping[str, object]) -> list[str]:
        given = {name: plain(value) for name, value in inputs.items() if value is not None}
        # The enumerations of azure-native are those of the API; those of pulumi-aws are suggestions.
        found = [
            one.reason
            for one in violations(
                cast("Properties", given), self._sdk.resource(token), judge_open=self.cloud == "azure-native"
            )
        ]
        return found + self._published.complaints(token, given)
