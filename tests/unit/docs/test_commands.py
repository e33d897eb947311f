"""Commands in the documentation: ours parse as they are written, and the page of judges lists all others with what they need."""

import re
import shlex
from collections.abc import Iterator
from typing import Final

import pytest

from pulumi_holdfast.cli import __main__ as command_line
from pulumi_holdfast.cli.kubectl import __main__ as plugin
from tests.support.doc_pages import ROOT, DocPage

PAGES: Final = (
    "README.md",
    "CONTRIBUTING.md",
    *sorted(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")),
)
TEMPLATES: Final = tuple(f"templates/{cloud}/README.md" for cloud in ("aws", "azure", "gcp"))
_BLOCK: Final = re.compile(r"^ *```(?P<language>\w*)\n(?P<text>.*?)^ *```", re.MULTILINE | re.DOTALL)
_SPAN: Final = re.compile(r"`((?:make|(?:\.venv/bin/|kubectl )?holdfast) [^`\n]+)`")
#: A line of a block is a command if it begins with a program, and output otherwise.
_LINE: Final = re.compile(r"(?:\$ )?(?:[A-Z_]+=\S+ )?(?P<program>[a-z][\w./-]*)(?= |$)")
_OURS: Final = re.compile(
    r"(?:[A-Z_]+=\S+ )?(?P<program>make|(?:\.venv/bin/)?holdfast|kubectl holdfast) (?P<words>.+)"
)


def block_lines(page: str) -> list[str]:
    """The lines of a page's blocks for a shell."""
    blocks = _BLOCK.finditer(DocPage.read(page).text)
    text = "".join(each["text"] for each in blocks if each["language"] in {"", "sh", "bash"})
    return [line.strip() for line in re.sub(r"\\\n\s*", " ", text).splitlines()]


def lines(page: str) -> list[str]:
    """Those of them that are commands, without comments."""
    return [line.removeprefix("$ ").partition("   #")[0] for line in block_lines(page) if program(line)]


def program(line: str) -> str | None:
    found = _LINE.match(line)
    return found["program"] if found and found["program"] in KNOWN else None


def ours() -> Iterator[tuple[str, str, str, bool]]:
    """Each command of this project: where it is, its program, its words, and whether it is one to copy or a mention."""
    for page in (*PAGES, *TEMPLATES):
        text = DocPage.read(page).text
        to_copy = lines(page)
        for written in [*to_copy, *_SPAN.findall(text)]:
            for part in re.split(r" && | \| | > ", written):
                if found := _OURS.fullmatch(part.strip()):
                    yield (
                        page,
                        found["program"].removeprefix(".venv/bin/"),
                        found["words"],
                        written in to_copy,
                    )


LISTED: Final = {
    name.strip(): row[1]
    for row in DocPage.read("docs/judges.md").rows("## Commands in these pages")[2:]
    for name in row[0].replace("`", "").split(",")
}
KNOWN: Final = {"make", "holdfast", *LISTED}


@pytest.mark.parametrize(("name", "fewest"), [("make", 60), ("holdfast", 30), ("kubectl holdfast", 8)])
def test_each_command_of_this_project_is_one_that_it_accepts(
    name: str, fewest: int, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = {each for each in ours() if each[1] == name}
    assert len(commands) >= fewest
    for page, _, words, whole in sorted(commands):
        refused = refusal(name, shlex.split(words), capsys)
        # A mention may leave out what the command needs.
        allowed = not whole and re.search(r"are required|expected (?:at least )?one argument", refused)
        assert not refused or allowed, f"{page}: a reader who copies `{name} {words}` gets: {refused}"


TARGETS: Final = {*re.findall(r"(?m)^\.PHONY: (\S+)$", (ROOT / "Makefile").read_text("utf-8"))}


def refusal(name: str, given: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """What the program says about the words; nothing if it accepts them."""
    if name == "make":
        unknown = [each for each in given if each not in TARGETS and "=" not in each and each != "…"]
        return f"no target {', '.join(unknown)}" if unknown else ""
    commands = command_line.COMMANDS if name == "holdfast" else plugin.COMMANDS
    if given[0] not in commands or len(given) == 1 or "…" in "".join(given):
        return "" if given[0] in commands else f"no command {given[0]}"
    try:
        command_line.parse(given) if name == "holdfast" else plugin.build_parser().parse_args(given)
    except SystemExit:
        return capsys.readouterr().err
    return ""


def test_every_other_program_is_listed_with_what_it_needs() -> None:
    used = {program(line) for page in PAGES for line in lines(page)} - {"make", "holdfast"}
    assert used == {*LISTED}
    assert {LISTED[each] for each in ("aws", "az", "gcloud")} == {"an account"}, "these cannot run here"
    written = [line for page in PAGES for line in block_lines(page)]
    begun = {found["program"] for line in written if (found := _PROBABLY.match(line))}
    assert {"az", "gcloud", "helm", "kubectl", "pulumi"} <= begun
    assert begun - KNOWN - SHELL == set()


#: A line with an option or a path behind its first words.
_PROBABLY: Final = re.compile(
    r"(?:\$ )?(?P<program>[a-z][a-z0-9-]+)(?: [\w./-]+){0,3} (?:--?[a-z]|\.?\.?/|oci://|[a-z]+/)"
)
#: What every machine has.
SHELL: Final = {"cd", "cp", "install", "printf", "python", "python3", "sed"}
