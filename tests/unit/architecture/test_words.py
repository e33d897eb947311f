"""Sources, messages and docs use the field's own terms.

Each pattern is a phrase that readers of Kubernetes', Karpenter's and Pulumi's documentation had to decode here.
"""

import re
import subprocess
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[3]

#: The phrase, and what to write instead.
DENIED: Final = {
    r"anew": "again",
    r"whoever|whomever|whosoever": "the user who, the caller that",
    r"whom": "who, or name the subject",
    r"for ever|forevermore": "indefinitely",
    r"(?:is|are|be|been|was|were|being|gets?|got) told": "is notified, is given, receives, or name the message",
    r"told of|tells? of": "is notified of, reports, describes",
    r"to be had": "available",
    r"(?:gives?|gave|giving|given) way": "yields",
    r"(?:is|are|was|were|be|been) looked at": "is reconciled, is checked",
    r"nobody|somebody|no-one": "name the component or the user",
    r"mend(?:s|ed|ing)?": "fix",
    r"such as have|as whom|than whom": "that have",
    r"(?:comes?|came|coming) to (?:its|their|an|the) end": "finishes, ends",
    r"rungs?": "tier",
    r"untold": "undetermined",
    r"stand-ins?|stand_ins?": "simulator, or fake in unit tests",
    r"rosters?": "job index",
    r"chores?": "debounced task",
    r"likeness(?:es)?": "profile",
    r"scenes?": "scenario",
    r"fates?": "fault",
    r"memories": "histories",
    r"wakes?": "enqueues, is requeued",
    r"grounds?": "dependencies, prerequisites",
    r"witness(?:es|ed)?": "timeline",
    r"arenas?|yards?": "environment",
    r"gave_way\w*|gives_way\w*": "yield",
    r"twins?": "copy, or name the object (admission policies, clone)",
    r"doubt(?:s|ed|ful|less)?": "undetermined",
    r"way_back|way back": "failback",
    r"whither|thither|hither|thereof|therein|thereby|lest|ere|hence": "plain modern English",
    r"beneath (?:it|them)": "below",
    r"of (?:its|their|one's|our) own accord": "by itself",
    r"ours? alone|alone knows": "only",
    r"(?:is|are) of no (?:use|avail)": "has no effect",
}

TEXT: Final = (".py", ".md", ".yaml", ".yml", ".toml", ".tpl", "Makefile", "Dockerfile")

#: Generated files, files of other projects, the licence, and this list.
PASSED_OVER: Final = ("components/charts/", "tools/", "LICENSE", "tests/unit/architecture/test_words.py")


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [
        ROOT / name
        for name in listed.stdout.splitlines()
        if name.endswith(TEXT) and not name.startswith(PASSED_OVER) and (ROOT / name).is_file()
    ]


def offences(pattern: str) -> list[str]:
    expression = re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE)
    return [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()[:120]}"
        for path in tracked()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if expression.search(line)
    ]


@pytest.mark.parametrize("pattern", DENIED)
def test_no_phrase_has_to_be_decoded(pattern: str) -> None:
    found = offences(pattern)
    assert not found, f"write {DENIED[pattern]!r} instead:\n" + "\n".join(found)
