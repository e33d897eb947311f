"""`python -m tests.soak filters`: compares the checks with the filters of the real scheduler on many drawn pods and nodes."""

import hashlib
import json
import os
import subprocess
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import say
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.build import Go
from tests.soak.filters.cases import FILTERS, Case, cases
from tests.soak.filters.recorded import record
from tests.soak.seeds import SEED_VARIABLE, seed_of

_SOURCE: Final = "tests/soak/filters/main.go"
_AT_ONCE: Final = 2000
_SHOWN: Final = 5
_SAMPLE: Final = 100


def filters(workspace: Workspace, *, seed: int | None, count: int, is_recorded: bool) -> None:
    """Judge drawn cases twice, and record the first ones if asked.

    Raises RehearsalError if a verdict of the checks differs from the scheduler's.
    """
    first = seed_of(seed, os.environ.get(SEED_VARIABLE))
    judge = built(workspace)
    counted: Counter[str] = Counter()
    wrong: Counter[str] = Counter()
    for number in range(-(-count // _AT_ONCE)):
        drawn = cases(first + number, min(_AT_ONCE, count - number * _AT_ONCE))
        answered = answers(judge, drawn)
        if is_recorded and not number:
            record(drawn[:_SAMPLE], answered[:_SAMPLE])
        for case, answer in zip(drawn, answered, strict=True):
            verdicts = case.verdicts()
            for name in FILTERS:
                found = verdicts[name]
                word = "not judged" if found is UNKNOWN else "passes" if found else "refuses"
                counted[f"{name} {word}"] += 1
                if found not in {UNKNOWN, answer[name]}:
                    wrong[name] += 1
                    if wrong[name] <= _SHOWN:
                        say(f"disagreement: {name} {word}: {json.dumps(case.question)}")
    say(
        f"seed {first}: {count} pods and nodes, {dict(sorted(counted.items()))}, disagreements: {dict(wrong)}"
    )
    if wrong:
        raise RehearsalError(
            f"{wrong.total()} verdicts are wrong: find the reason, and add a test of the check for each"
        )


def built(workspace: Workspace) -> Path:
    """Return the judge, built with the modules of the local control plane unless it is in .tools already."""
    source, module = workspace.project_root / _SOURCE, workspace.project_root / "tools" / "kubernetes"
    content = source.read_bytes() + (module / "go.mod").read_bytes()
    made = workspace.tools_dir / "soak" / f"filters-{hashlib.sha256(content).hexdigest()[:12]}"
    if not made.is_file():
        made.parent.mkdir(parents=True, exist_ok=True)
        partial = made.with_suffix(".partial")
        say("building the judge")
        Go().run("the scheduler's filters", ("build", "-o", os.fspath(partial), os.fspath(source)), module)
        partial.replace(made)
    return made


def answers(judge: Path, drawn: Sequence[Case]) -> Sequence[dict[str, bool]]:
    """Return what the scheduler's filters answer, by filter."""
    asked = "".join(f"{json.dumps(case.question)}\n" for case in drawn)
    done = subprocess.run((judge,), input=asked, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RehearsalError(f"the scheduler's filters failed: {done.stderr.strip()}")
    return [cast("dict[str, bool]", json.loads(line)) for line in done.stdout.splitlines()]
