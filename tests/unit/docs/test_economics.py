"""What the page on economics says its commands print is what they print."""

import shlex
import textwrap
from pathlib import Path

import pytest

from pulumi_holdfast.cli.__main__ import main
from tests.support.doc_pages import DocPage

PAGE = DocPage.read("docs/economics.md")
COMMAND = "holdfast "


def commands() -> list[tuple[str, str]]:
    """The commands of the page, each with what is printed after it."""
    found: list[tuple[str, list[str]]] = []
    fence: str | None = None
    for line in PAGE.text.splitlines():
        bare = line.strip()
        if bare.startswith("```"):
            fence = None if fence else bare
        elif fence == "```" and bare.startswith(COMMAND):
            found.append((bare.removeprefix(COMMAND), []))
        elif fence == "```" and found:
            found[-1][1].append(line)
    return [(command, textwrap.dedent("\n".join(said))) for command, said in found]


def test_every_command_prints_what_the_page_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # In order, since later ones read what earlier ones have written.
    monkeypatch.chdir(tmp_path)
    recorded = "…"  # the ellipsis of a command that needs the recorded traces, which have no license to copy
    asked = [each for each in commands() if recorded not in each[0]]
    assert (len(asked), len(commands())) == (10, 11)
    for command, said in asked:
        assert main(shlex.split(command)) == 0, f"{command} has an answer"
        assert capsys.readouterr().out.rstrip() == said.rstrip(), command
