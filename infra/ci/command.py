"""`holdfast ci …`: what the workflows run beside `pulumi` itself."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from holdfast.infra.bootstrap.command import run_command
from holdfast.infra.ci.comment import drift_issue, marker, parse_plan, preview_comment
from holdfast.infra.ci.github import Repository
from holdfast.infra.clouds import pool_summaries
from holdfast.infra.cost.command import cost_of, region_of
from holdfast.infra.cost.report import cost_change
from holdfast.infra.paths import in_project
from holdfast.infra.program import load_platform
from holdfast.infra.reachability import walks
from holdfast.scheduling.errors import ConfigError

if TYPE_CHECKING:
    import argparse

    from holdfast.scheduling.cost import StackCost


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands `comment`, `post` and `drift`."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    comment = commands.add_parser("comment", help="print the comment about a stack as Markdown")
    _add_plan(comment)
    comment.add_argument("--before", type=Path, metavar="FILE", help="the stack file before the change")
    comment.add_argument("--failed", action="store_true", help="the preview failed")
    post = commands.add_parser("post", help="write a comment to a pull request, or update it")
    post.add_argument("repository", metavar="OWNER/NAME")
    post.add_argument("pull_request", type=int, metavar="NUMBER")
    post.add_argument("file", type=Path, metavar="FILE", help="the comment")
    drift = commands.add_parser("drift", help="open, update or close the issue about a stack's drift")
    _add_plan(drift)
    drift.add_argument("repository", metavar="OWNER/NAME")


def _add_plan(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("stack", metavar="STACK", help="a stack in stacks/, for example `aws-dev`")
    parser.add_argument("plan", type=Path, metavar="PLAN", help="what the preview printed")


def run(parsed: argparse.Namespace) -> int:
    """Run a subcommand. Raises ConfigError."""
    if parsed.command == "comment":
        before = None if parsed.before is None else _cost_before(parsed.before)
        print(
            comment_on(parsed.stack, _text(parsed.plan), before=before, succeeded=not parsed.failed), end=""
        )
        return 0
    repository = Repository(name=parsed.repository, runner=run_command)
    if parsed.command == "post":
        print(f"comment: {repository.upsert_comment(parsed.pull_request, _text(parsed.file))}")
    elif (plan := parse_plan(_text(parsed.plan))).differs:
        title = f"{parsed.stack} differs from its configuration"
        print(f"issue: {repository.upsert_issue(title, drift_issue(parsed.stack, plan))}")
    else:
        print(f"issue: {repository.close_issue(marker(parsed.stack, 'drift'))}")
    return 0


def comment_on(stack: str, plan: str, *, before: StackCost | None, succeeded: bool) -> str:
    """The comment about a stack of this checkout; `before` is its cost before the change, None for a new stack."""
    try:
        platform = load_platform(Path(in_project(f"stacks/Pulumi.{stack}.yaml")))
    except ConfigError as error:
        return preview_comment(
            stack, parse_plan(plan), succeeded=False, cost=[f"Not known: {error}"], walks=[]
        )
    return preview_comment(
        stack,
        parse_plan(plan),
        succeeded=succeeded,
        cost=list(cost_change(before, cost_of(platform), region_of(platform))),
        walks=list(walks(platform.namespaces, pool_summaries(platform))),
    )


def _cost_before(file: Path) -> StackCost | None:
    """The cost by an earlier stack file; None if there is none, or if this release cannot read it."""
    try:
        return cost_of(load_platform(file))
    except ConfigError:
        return None


def _text(file: Path) -> str:
    return file.read_text("utf-8", errors="replace") if file.exists() else ""
