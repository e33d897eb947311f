"""What a command tells at its end, at a glance."""

from collections.abc import Mapping

from holdfast.scheduling.json import Json
from holdfast.simulator.pulumi import Outcome, Verdict

# The engine's operations, as one says them of the past and of a plan.
_WORDS: Mapping[str, tuple[str, str]] = {
    "create": ("created", "to create"),
    "update": ("updated", "to update"),
    "delete": ("deleted", "to delete"),
    "replace": ("replaced", "to replace"),
    "import": ("imported", "to import"),
    "read": ("read", "to read"),
    "same": ("unchanged", "unchanged"),
}


def summary(outcome: Outcome) -> list[str]:
    """Return the lines that end a command: changes, policies, time."""
    title = f"{outcome.command} of {outcome.stack}"
    indent = " " * (len(title) + 2)
    judged = [f"{indent}{policies(outcome)}"] if outcome.packs else []
    return [f"{title}: {changes(outcome)}", *judged, f"{indent}{outcome.seconds:.0f} s"]


def changes(outcome: Outcome) -> str:
    """Return what was changed, or would be: `3 created, 12 unchanged`."""
    tense = 1 if outcome.command == "preview" else 0
    counted = {word: count for word, count in outcome.changes.items() if count}
    # A replacement counts as one: its two halves are steps of it.
    told = [f"{counted[word]} {says[tense]}" for word, says in _WORDS.items() if word in counted]
    return ", ".join(told) or "nothing to do"


def policies(outcome: Outcome) -> str:
    """Return who judged, and how many violations there are."""
    if not outcome.packs:
        return "no policy pack judged it"
    packs = ", ".join(f"{name} {version}" for name, version in outcome.packs.items())
    stopping = sum(verdict.stops for verdict in outcome.verdicts)
    advice = len(outcome.verdicts) - stopping
    return f"policies {packs}: {stopping} mandatory, {advice} advisory violations"


def verdict_lines(outcome: Outcome) -> list[str]:
    """Return the policies' verdicts, the ones that stop the run first."""
    if not outcome.verdicts:
        return [f"  {policies(outcome)}"]
    ordered = sorted(outcome.verdicts, key=lambda verdict: not verdict.stops)
    return [line for verdict in ordered for line in _told(verdict)]


def output_lines(outputs: Json) -> list[str]:
    """Return a line for each output of the stack; secrets are hidden already."""
    return [f"  {name}: {value}" for name, value in sorted(outputs.items())]


def _told(verdict: Verdict) -> list[str]:
    where = verdict.urn.rsplit("::", 1)[-1] if verdict.urn else "the stack"
    head = f"  {verdict.level.upper()}  {verdict.policy}  ({where})"
    return [head, *(f"      {line}" for line in verdict.message.splitlines() if line.strip())]
