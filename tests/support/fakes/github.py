"""GitHub as `gh api` reaches it: the comments of a pull request and the issues of a repository, kept in a file.

It refuses what GitHub documents that it refuses: a text of more than 65,536 characters, and an unknown number.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast
from urllib.parse import parse_qs

from pulumi_holdfast.cli.bootstrap.command import CommandResult

_LONGEST_BODY = 65_536


@dataclass(kw_only=True)
class FakeGitHub:
    """Answers `gh api`; `creator` wrote each issue and comment that is opened here."""

    comments: list[dict[str, object]] = field(default_factory=lambda: [{"id": 1, "body": "of a reviewer"}])
    issues: list[dict[str, object]] = field(default_factory=list[dict[str, object]])
    #: The open pull requests by their branch, `owner:branch`.
    pulls: dict[str, list[dict[str, object]]] = field(default_factory=dict[str, list[dict[str, object]]])
    calls: list[str] = field(default_factory=list[str])

    def __call__(self, words: Sequence[str]) -> CommandResult:
        """Answer `gh api …`."""
        _, _, *rest = words
        path = next(word for word in rest if word.startswith("repos/"))
        if "/pulls?" in path:
            # Of a field that is given twice, the last one counts.
            head = parse_qs(path.partition("?")[2])["head"][-1]
            return CommandResult(code=0, output=json.dumps(self.pulls.get(head, [])), errors="")
        listed = self.comments if "comments" in path else self.issues
        if "--paginate" in rest:
            shown = [each for each in listed if each.get("state", "open") == "open"]
            # One array for each page.
            return CommandResult(code=0, output=json.dumps(shown[:1]) + json.dumps(shown[1:]), errors="")
        fields = cast("dict[str, object]", json.loads(Path(rest[rest.index("--input") + 1]).read_text()))
        method = rest[rest.index("--method") + 1]
        self.calls.append(f"{method} {path}")
        if len(str(fields.get("body", ""))) > _LONGEST_BODY:
            return CommandResult(
                code=1, output="", errors="HTTP 422: body is too long (maximum is 65536 characters)"
            )
        if method == "POST":
            number = len(listed) + 1
            listed.append({"id": number, "number": number, **fields})
            return CommandResult(code=0, output="", errors="")
        number = int(path.rsplit("/", 1)[1])
        listed[number - 1].update(fields)
        return CommandResult(code=0, output="", errors="")

    def install(self, folder: Path) -> None:
        """Write the command `gh` into a folder; its GitHub is in `github.json` beside it."""
        command = folder / "gh"
        command.write_text(
            f"#!{sys.executable}\nfrom tests.support.fakes.github import main\nmain({str(folder / 'github.json')!r})\n"
        )
        command.chmod(0o755)
        self.save(folder / "github.json")

    def save(self, file: Path) -> None:
        """Write what GitHub has to a file."""
        file.write_text(json.dumps(vars(self)))

    @classmethod
    def read(cls, folder: Path) -> FakeGitHub:
        """Read what the command in a folder has done."""
        return cls(**json.loads((folder / "github.json").read_text()))


def main(file: str) -> None:
    """Run the command once."""
    github = FakeGitHub(**json.loads(Path(file).read_text()))
    answer = github(["gh", *sys.argv[1:]])
    github.save(Path(file))
    print(answer.output, end="")
    print(answer.errors, end="", file=sys.stderr)
    sys.exit(answer.code)
