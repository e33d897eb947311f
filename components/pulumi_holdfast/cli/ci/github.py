"""Writes one comment to a pull request, or one issue about drift, and updates it: through GitHub's command line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, cast
from urllib.parse import quote

from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import mapping

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pulumi_holdfast.cli.bootstrap.command import Runner
    from pulumi_holdfast.ladder.json import JsonValue


@dataclass(frozen=True, kw_only=True)
class Repository:
    """A repository on GitHub, `owner/name`, as the credentials of `gh` reach it."""

    name: str
    runner: Runner

    def pull_request_of(self, head: str, commit: str) -> int | None:
        """The open pull request of a branch, `owner:branch`, whose last commit is this one."""
        # Quoted: a branch may have a name like `x&head=another:branch`.
        for each in self._list(f"pulls?state=open&head={quote(head, safe='')}"):
            if mapping(each.get("head")).get("sha") == commit:
                return int(str(each.get("number")))
        return None

    def upsert_comment(self, pull_request: int, text: str) -> str:
        """Write the comment, or update the one that begins with the same line; return which of the two it was."""
        first = text.splitlines()[0]
        for comment in self._list(f"issues/{pull_request}/comments"):
            if str(comment.get("body")).startswith(first):
                self._send("PATCH", f"issues/comments/{comment.get('id')}", body=text)
                return "updated"
        self._send("POST", f"issues/{pull_request}/comments", body=text)
        return "created"

    def upsert_issue(self, title: str, text: str) -> str:
        """Open the issue, or update the open one that begins with the same line."""
        number = self._issue(text.splitlines()[0])
        if number is None:
            self._send("POST", "issues", title=title, body=text)
            return "created"
        self._send("PATCH", f"issues/{number}", body=text)
        return "updated"

    def close_issue(self, first_line: str) -> str:
        """Close the open issue that begins with this line, if there is one."""
        number = self._issue(first_line)
        if number is None:
            return "none is open"
        self._send("PATCH", f"issues/{number}", state="closed")
        return "closed"

    def _issue(self, first_line: str) -> JsonValue:
        issues = self._list("issues?state=open&creator=github-actions%5Bbot%5D")
        return next(
            (each.get("number") for each in issues if str(each.get("body")).startswith(first_line)), None
        )

    def _list(self, path: str) -> Iterator[Mapping[str, JsonValue]]:
        # One JSON array for each page, one behind the other.
        pages = self._run("--paginate", f"repos/{self.name}/{path}")
        decoder, at = json.JSONDecoder(), 0
        while at < len(pages):
            page, at = cast("tuple[JsonValue, int]", decoder.raw_decode(pages, at))
            if isinstance(page, list):
                yield from (each for each in page if isinstance(each, dict))
            while at < len(pages) and pages[at].isspace():
                at += 1

    def _send(self, method: str, path: str, **fields: str) -> None:
        # In a file: an argument of a command may be shorter than a comment.
        with NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as body:
            json.dump(fields, body)
            body.flush()
            self._run("--method", method, f"repos/{self.name}/{path}", "--input", body.name)

    def _run(self, *words: str) -> str:
        answer = self.runner(("gh", "api", *words))
        if answer.code != 0:
            raise ConfigError.of(
                field=f"gh api {' '.join(words[:3])}",
                value=" ".join((answer.errors or answer.output).split()) or f"exit code {answer.code}",
                allowed="a token that may write to this repository's pull requests and issues",
                fix="Set GH_TOKEN, and grant the job `pull-requests: write` and `issues: write`.",
            )
        return answer.output
