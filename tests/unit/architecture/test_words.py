"""Sources, messages and docs use the field's own terms.

Each pattern is a phrase that readers of Kubernetes', Karpenter's and Pulumi's documentation had to decode here.
"""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

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
    r"stand-ins?": "simulator, or fake in unit tests",
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
    r"conducts?": "settings",
    r"twins?": "copy, or name the object (admission policies, clone)",
    r"doubt(?:s|ed|ful|less)?": "undetermined",
    r"way back": "failback",
    r"whither|thither|hither|thereof|therein|thereby|lest|ere|hence": "plain modern English",
    r"beneath (?:it|them)": "below",
    r"of (?:its|their|one's|our) own accord": "by itself",
    r"ours? alone|alone knows": "only",
    r"(?:is|are) of no (?:use|avail)": "has no effect",
    r"(?:goes|go|going|went) round": "tries in turn",
    r"(?:it )?is not so that": "name the condition",
    r"yours from now on": "edit it as needed",
}

TEXT: Final = (
    ".py",
    ".md",
    ".yaml",
    ".yml",
    ".toml",
    ".tpl",
    ".css",
    ".html",
    ".js",
    "Makefile",
    "Dockerfile",
)

#: Generated files, files of other projects, the licence, and this list.
PASSED_OVER: Final = (
    "components/pulumi_holdfast/kubernetes/charts/",
    "tools/",
    "LICENSE",
    "tests/unit/architecture/test_words.py",
)


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [
        ROOT / name
        for name in listed.stdout.splitlines()
        if name.endswith(TEXT) and not name.startswith(PASSED_OVER) and (ROOT / name).is_file()
    ]


EXPRESSIONS: Final = {
    pattern: re.compile(rf"(?<![\w-])(?:{pattern})(?![\w-])", re.IGNORECASE) for pattern in DENIED
}
#: Any of them: each file is searched once, in lower case, which takes a third of the time of IGNORECASE.
DENIED_PHRASE: Final = re.compile(rf"\b(?:{'|'.join(DENIED)})\b")


#: Where the words of an identifier meet: `is_announced`, `wayBack`.
_WITHIN_IDENTIFIERS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|_")


def offences(path: Path) -> Iterator[str]:
    text = _WITHIN_IDENTIFIERS.sub(" ", path.read_text(encoding="utf-8"))
    if not DENIED_PHRASE.search(text.lower()):
        return
    for number, line in enumerate(text.splitlines(), 1):
        for pattern, expression in EXPRESSIONS.items():
            if expression.search(line):
                at = f"{path.relative_to(ROOT)}:{number}"
                yield f"{at}: write {DENIED[pattern]!r} instead: {line.strip()[:120]}"


def test_no_phrase_has_to_be_decoded() -> None:
    found = [each for path in tracked() for each in offences(path)]
    assert not found, "\n".join(["readers have to decode:", *found])
