"""The comment on a pull request about one stack, and the issue about its drift, from the output of a preview or a rehearsal.

Pure. The comment has the plan, the violations of policies, where each shape's jobs end, and the cost.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pulumi_holdfast.ladder.reachability.walk import Walk

#: The most characters of a comment or an issue on GitHub.
MOST_CHARACTERS: Final = 65_536

_NO_PLAN: Final = "Nothing was printed."
_CUT: Final = "[… {count} lines are left out; the run of the workflow has all of them …]"
_CHANGES: Final = re.compile(r"^\s*[+~-]+\s*\d+ (to|update|create|delete|replace)", re.MULTILINE)
_COLOR: Final = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
# `pulumi preview --diff` prints each event as it comes: a violation may stand between two resources.
_VIOLATION: Final = re.compile(r"^ +\S+@v\S+ \[(advisory|mandatory|remediate)\]")
_RESOURCE: Final = re.compile(r"^\s*(--outputs:--$|\S*\s*[\w.-]+:[\w./-]*:[\w.-]+: \([a-z-]+\))")
_MARKER: Final = re.compile(r"<!-- holdfast preview of [A-Za-z0-9_.-]+ -->\n")
_PACK: Final = re.compile(r"^    (\S+) +(\d\S*)$")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The output of a preview or a rehearsal: resources, violations, and the summary; `packs` are the packs that ran."""

    resources: str
    policies: str
    summary: str
    packs: str = ""
    kind: str = "preview"

    @property
    def differs(self) -> bool:
        """Whether the summary counts a resource to create, update, replace or delete."""
        return bool(_CHANGES.search(self.summary))


def parse_plan(text: str) -> Plan:
    """Split the output of `pulumi preview --diff`. Text without a summary is all plan."""
    found: dict[str, list[str]] = {"resources": [], "policies": [], "summary": [], "packs": []}
    part = "resources"
    for line in _COLOR.sub("", text).splitlines():
        if line == "Resources:":
            part = "summary"
        elif line == "Policy Packs run:":
            part = "packs"
        elif part in {"resources", "policies"}:
            part = _part(line, part)
            found[part].append(line.rstrip())
        elif line.startswith("error:"):
            found["summary"].append(line.rstrip())
        elif part != "end" and line.startswith(" "):
            found[part].append(line.rstrip())
        else:
            # Hints for a user at a terminal.
            part = "end"
    packs = (_PACK.match(line) for line in found["packs"])
    return Plan(
        resources="\n".join(found["resources"]).strip("\n"),
        policies="\n".join(found["policies"]).strip("\n"),
        summary="\n".join(found["summary"]),
        packs=", ".join(f"{pack[1].partition('|')[0]} {pack[2]}" for pack in packs if pack),
    )


def _part(line: str, before: str) -> str:
    if _VIOLATION.match(line):
        return "policies"
    return "resources" if _RESOURCE.match(line) else before


def parse_rehearsal(text: str) -> Plan:
    """Split the output of `holdfast rehearse`: the resources and the verdicts of its preview, and the table of its steps."""
    plain = _COLOR.sub("", text)
    before, _, steps = plain.partition("\nRehearsal of ")
    _, heading, rest = before.partition("\n=== preview\n")
    preview = rest.partition("\n=== ")[0]
    resources, _, verdicts = preview.partition("\nPolicies\n")
    return Plan(
        # The engine's own list of violations says the same as the second one.
        resources=(resources.partition("\nPolicies:")[0] if heading else before).strip("\n"),
        policies=verdicts.strip("\n"),
        summary=steps.partition("\n")[2].strip("\n"),
        kind="rehearsal",
    )


def marker(stack: str, what: str = "preview") -> str:
    """The first line of a comment, which identifies it in the next run."""
    return f"<!-- holdfast {what} of {stack} -->"


def is_comment(text: str) -> bool:
    """Whether a text begins as a comment of a workflow; otherwise its first line could name a comment of a person."""
    return _MARKER.match(text) is not None


def preview_comment(
    stack: str, plan: Plan, *, succeeded: bool, cost: Sequence[str], walks: Sequence[tuple[str, Walk]]
) -> str:
    """The comment, at most MOST_CHARACTERS long: of a longer plan, the lines in the middle are left out."""
    head = [
        marker(stack),
        f"## `{stack}`: {plan.kind if succeeded else f'the {plan.kind} failed'}",
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
    policies = _fitting(plan.policies or _no_violation(plan), space // 2)
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


def _no_violation(plan: Plan) -> str:
    return f"{plan.packs}: no violation" if plan.packs else "No policy pack ran."


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
