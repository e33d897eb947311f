"""`holdfast ci …`: commands for workflows, beside `pulumi` itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pulumi_holdfast.cli.bootstrap.command import run_command
from pulumi_holdfast.cli.ci.comment import (
    Plan,
    drift_issue,
    is_comment,
    marker,
    parse_plan,
    parse_rehearsal,
    preview_comment,
)
from pulumi_holdfast.cli.ci.github import Repository
from pulumi_holdfast.config.paths import stack_file
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands `comment`, `post`, `post-fork` and `drift`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    comment = commands.add_parser("comment", help="print the comment about a stack as Markdown")
    _add_plan(comment)
    comment.add_argument("--before", type=Path, metavar="FILE", help="the stack file before the change")
    comment.add_argument("--failed", action="store_true", help="the preview failed")
    comment.add_argument("--rehearsal", action="store_true", help="PLAN is the output of `holdfast rehearse`")
    post = commands.add_parser("post", help="write a comment to a pull request, or update it")
    post.add_argument("repository", metavar="OWNER/NAME")
    post.add_argument("pull_request", type=int, metavar="NUMBER")
    post.add_argument("file", type=Path, metavar="FILE", help="the comment")
    fork = commands.add_parser("post-fork", help="write the comments that a fork's workflow saved")
    fork.add_argument("repository", metavar="OWNER/NAME")
    fork.add_argument("head", metavar="OWNER:BRANCH", help="the branch of the fork")
    fork.add_argument("commit", metavar="COMMIT", help="the commit that the comments are about")
    fork.add_argument(
        "folder", type=Path, metavar="FOLDER", help="where the comments are, one file for each stack"
    )
    drift = commands.add_parser("drift", help="open, update or close the issue about a stack's drift")
    _add_plan(drift)
    drift.add_argument("repository", metavar="OWNER/NAME")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `aws-dev`")
    parser.add_argument("plan", type=Path, metavar="PLAN", help="what the preview printed")


def run(parsed: argparse.Namespace) -> int:
    """Run a subcommand. Raises ConfigError."""
    if parsed.command == "comment":
        plan = (parse_rehearsal if parsed.rehearsal else parse_plan)(_text(parsed.plan))
        print(comment_on(parsed.stack, plan, before=parsed.before, succeeded=not parsed.failed), end="")
        return 0
    repository = Repository(name=parsed.repository, runner=run_command)
    if parsed.command == "post":
        text = _text(parsed.file)
        if not is_comment(text):
            raise ConfigError([_no_comment(parsed.file)])
        print(f"comment: {repository.upsert_comment(parsed.pull_request, text)}")
    elif parsed.command == "post-fork":
        for line in _post_fork(repository, parsed.head, parsed.commit, sorted(parsed.folder.glob("*.md"))):
            print(line)
    elif (plan := parse_plan(_text(parsed.plan))).differs:
        title = f"{parsed.stack} differs from its configuration"
        print(f"issue: {repository.upsert_issue(title, drift_issue(parsed.stack, plan))}")
    else:
        print(f"issue: {repository.close_issue(marker(parsed.stack, 'drift'))}")
    return 0


def _post_fork(repository: Repository, head: str, commit: str, files: Sequence[Path]) -> Iterator[str]:
    """Write each comment to the open pull request of this commit; skip files that are not comments of a workflow."""
    number = repository.pull_request_of(head, commit)
    if number is None:
        yield "comment: no open pull request has this commit"
        return
    for file in files:
        text = _text(file)
        if is_comment(text):
            yield f"comment: {repository.upsert_comment(number, text)}"
        else:
            yield "comment: skipped a file that does not begin as a comment of this workflow"


def comment_on(stack: str, plan: Plan, *, before: Path | None, succeeded: bool) -> str:
    """The comment about a stack of this checkout; `before` is its file before the change, None for a new stack."""
    # Pulumi's SDK takes most of a command's start, and those that post a comment need no stack.
    from pulumi_holdfast.cli.cost.command import cost_of, region_of
    from pulumi_holdfast.clouds import pool_summaries
    from pulumi_holdfast.config.reachability import walks
    from pulumi_holdfast.cost.report import cost_change
    from pulumi_holdfast.stack_program import load_platform

    try:
        platform = load_platform(stack_file(stack))
    except ConfigError as error:
        return preview_comment(stack, plan, succeeded=False, cost=[f"Not known: {error}"], walks=[])
    try:
        earlier = None if before is None else cost_of(load_platform(before))
    except ConfigError:
        # There was none, or this release cannot read it.
        earlier = None
    return preview_comment(
        stack,
        plan,
        succeeded=succeeded,
        cost=list(cost_change(earlier, cost_of(platform), region_of(platform))),
        walks=list(walks(platform.namespaces, pool_summaries(platform))),
    )


def _no_comment(file: Path) -> Problem:
    return Problem(
        field=str(file),
        value="no comment of a workflow",
        allowed="what `holdfast ci comment` printed",
        fix="Run `make ci-preview` or `make ci-rehearse` first.",
    )


def _text(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.exists() else ""
