"""The comment on a pull request about one stack: its plan, the policies' verdicts, its jobs' ways down, its cost. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.reachability.walk import Walk

#: The most characters of a comment or an issue on GitHub.
MOST_CHARACTERS: Final = 65_536

_NO_PLAN: Final = "The preview printed nothing."
_CUT: Final = "[… {count} lines are left out; the run of the workflow has all of them …]"
_CHANGES: Final = re.compile(r"^\s*[+~-]+\s*\d+ (to|update|create|delete|replace)", re.MULTILINE)
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What `pulumi preview --diff` or `holdfast preview` printed: the resources, the verdicts, the summary."""

    resources: str
    policies: str
    summary: str

    @property
    def differs(self) -> bool:
        """Whether the summary counts a resource to create, update, replace or delete."""
        return bool(_CHANGES.search(self.summary))


def parse_plan(text: str) -> Plan:
    """Split the output of a preview at its headings. Text without them is all plan."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in _COLOR.sub("", text).splitlines():
        if line in {"Policies:", "Policies", "Resources:"} or line.startswith("preview of "):
            heading = "Policies" if line.startswith("Policies") else "Resources"
            found.setdefault(heading, [])
            if not line.startswith("preview of "):
                continue
        found[heading].append(line.rstrip())
    return Plan(
        resources="\n".join(found[""]).strip("\n"),
        policies="\n".join(found.get("Policies", [])).strip("\n"),
        summary="\n".join(found.get("Resources", [])).strip("\n"),
    )


def marker(stack: str, what: str = "preview") -> str:
    """The first line of a comment, by which the next run finds it."""
    return f"<!-- holdfast {what} of {stack} -->"


def preview_comment(
    stack: str, plan: Plan, *, succeeded: bool, cost: Sequence[str], walks: Sequence[tuple[str, Walk]]
) -> str:
    """The comment, at most MOST_CHARACTERS long: of a longer plan, the lines in the middle are left out."""
    head = [
        marker(stack),
        f"## `{stack}`: {'preview' if succeeded else 'the preview failed'}",
        "",
        *_block(plan.summary),
        "### Cost",
        "",
        *cost,
        "",
        "### Jobs",
        "",
        "| namespace | shape | ends |",
        "|---|---|---|",
        *(
            f"| {namespace} | {walk.shape.name} | {walk.outcome.value}: {walk.steps[-1].title} |"
            for namespace, walk in walks
        ),
        "",
        "### Policies",
        "",
    ]
    before, after = (
        "\n".join([*head, ""]),
        "\n\n### Plan\n\n<details><summary>Every resource that changes</summary>\n\n",
    )
    end = "\n\n</details>\n"
    space = MOST_CHARACTERS - len(before) - len(after) - len(end)
    policies = _fitting(plan.policies or "No policy reported a violation.", space // 2)
    shown = _fitting(plan.resources or _NO_PLAN, space - len(policies))
    return f"{before}{policies}{after}{shown}{end}"


def drift_issue(stack: str, plan: Plan) -> str:
    """The text of the issue about resources that differ from the configuration."""
    head = "\n".join(
        [
            marker(stack, "drift"),
            f"The resources of `{stack}` differ from its configuration. Run `pulumi up -s {stack} --refresh` to restore them, or",
            "change the configuration. This issue is updated by the next run, and closed when nothing differs.",
            "",
            *_block(plan.summary),
            "",
        ]
    )
    return f"{head}{_fitting(plan.resources or _NO_PLAN, MOST_CHARACTERS - len(head))}"


def _block(text: str) -> list[str]:
    return [f"```\n{text}\n```", ""] if text else []


def _fitting(text: str, space: int) -> str:
    """The text as a code block of at most `space` characters; its lines in the middle are left out if it is longer."""
    fence = "```" if "```" not in text else "~~~~"
    most = space - 2 * (len(fence) + 1)
    if len(text) <= most:
        return f"{fence}\n{text}\n{fence}"
    lines = text.splitlines()
    first, last = list[str](), list[str]()
    left = most - len(_CUT.format(count=len(lines))) - 2
    while lines:
        end = len(first) > len(last)
        line = lines[-1] if end else lines[0]
        if len(line) + 1 > left:
            break
        left -= len(line) + 1
        if end:
            last.insert(0, lines.pop())
        else:
            first.append(lines.pop(0))
    return "\n".join([fence, *first, _CUT.format(count=len(lines)), *last, fence])
