"""The workflows of a project that depends on the wheel, from those of this repository, which has a Makefile and the sources. Pure.

The steps of the composite action stand in the workflow itself, for one cloud; a `make ci-…` is what its recipe runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

#: Installs the wheel for the program, and the policy pack beside it with the same packages.
_INSTALL: Final = (
    "python -m venv .venv",
    ".venv/bin/pip install --quiet -r requirements.txt",
    ".venv/bin/holdfast pack dist/policy-pack",
    'ln -s "$PWD/.venv" dist/policy-pack/venv',
)
#: What each variable of a recipe is in a step; the others are expanded as make does it.
_IN_A_STEP: Final[Mapping[str, str]] = {
    "RUN": ".venv/bin/holdfast",
    "STACK": "$STACK",
    "BASE": "$BASE",
    "REPOSITORY": "$REPOSITORY",
    "PULL_REQUEST": "$PULL_REQUEST",
}
_AFFECTED: Final = "python3 -m rehearsal.affected_stacks"

_JOB: Final = re.compile(r"(?m)^  (?=[a-z-]+:$)")
_ACTION: Final = re.compile(
    r"(?m)^      - uses: \./\.github/actions/stack\n        with:\n((?:          .+\n)+)"
)
_STEP: Final = re.compile(r"(?m)^    - ")
_ONE_CLOUD: Final = re.compile(r"if: inputs\.cloud == '([a-z]+)'\n\s+")
_MAKE: Final = re.compile(
    r"(?m)^      - run: make (?P<target>ci-[a-z]+)$|^        run: make (?P<later>ci-[a-z]+)$"
)
_VARIABLE: Final = re.compile(r"\$\((?P<name>[A-Z_]+)\)")
_DEFINED: Final = re.compile(r"(?m)^(?P<name>[A-Z_]+)\s*:?=[ ]*(?P<value>(?:.*\\\n)*.*)$")


def project_workflow(text: str, *, action: str, makefile: str, cloud: str) -> str:
    """A workflow for a project with stacks on one cloud, from a workflow, the composite action and the Makefile."""
    head, *jobs = _JOB.split(text.replace(*_FORKS))
    kept = [_project_job(job, action, makefile, cloud) for job in jobs if not job.startswith("rehearse:")]
    return "  ".join([head, *kept]).rstrip("\n") + "\n"


#: Rehearsals of forks need the sources of the tools.
_FORKS: Final = (
    (
        "# A branch of this repository is previewed against its cloud; a fork, which gets no identity, is rehearsed, and the workflow\n"
        "# `comment` writes what that found.\n"
    ),
    "# A fork gets no identity, and no preview.\n",
)


def _project_job(job: str, action: str, makefile: str, cloud: str) -> str:
    def steps(found: re.Match[str]) -> str:
        lines = [line.strip().partition(": ") for line in found[1].splitlines()]
        given = {name: value for name, _, value in lines}
        return _steps_of(action, given, cloud)

    def recipe(found: re.Match[str]) -> str:
        lines = recipe_of(makefile, found["target"] or found["later"])
        return _run_step(lines, prefix="      - " if found["target"] else "        ")

    job = _MAKE.sub(recipe, _ACTION.sub(steps, job))
    return job if _AFFECTED not in job else _with_package(job)


def _with_package(job: str) -> str:
    """A job that asks the package for stacks, which a checkout of the sources asks a file."""
    install = _run_step(
        ["python3 -m venv .venv", ".venv/bin/pip install --quiet --no-deps -r requirements.txt"],
        prefix="      - ",
    )
    job = job.replace(_AFFECTED, ".venv/bin/python -m pulumi_holdfast.rehearsal.affected_stacks")
    return re.sub(r"(?m)^      - id: ", f"{install}\n      - id: ", job, count=1)


def _steps_of(action: str, given: Mapping[str, str], cloud: str) -> str:
    """The steps of the composite action for one cloud, with the values that the workflow gives."""
    _, _, steps = action.partition("  steps:\n")
    kept: list[str] = []
    for step in _STEP.split(steps)[1:]:
        of = _ONE_CLOUD.search(step)
        if of is not None and of[1] != cloud:
            continue
        text = re.sub(r"\n\s+shell: bash(?=\n|$)", "", _ONE_CLOUD.sub("", step))
        text = re.sub(r"\$\{\{ inputs\.([a-z-]+) \}\}", lambda found: given[found[1]], text)
        text = text.replace(": see tools/pulumi/go.mod", "")
        kept.append("      - " + text.rstrip("\n").replace("\n    ", "\n      ") + "\n")
    return "".join(kept).replace("      - run: make venv", _run_step(_INSTALL, prefix="      - "))


def recipe_of(makefile: str, target: str) -> Sequence[str]:
    """The lines of a target's recipe for a shell, with the variables expanded. Raises KeyError for an unknown one."""
    found = re.search(rf"(?m)^{target}:.*\n(?P<recipe>(?:\t.*\n?)+)", makefile)
    if found is None:
        raise KeyError(target)
    defined = {
        each["name"]: re.sub(r"\s*\\\n\s*", " ", each["value"]) for each in _DEFINED.finditer(makefile)
    }
    recipe = re.sub(r"(?m)^\t@?", "", found["recipe"])
    values = {**defined, **_IN_A_STEP}
    while _VARIABLE.search(recipe):
        recipe = _VARIABLE.sub(lambda variable: values[variable["name"]], recipe)
    # A command of a script needs a line of its own, and no continuation.
    recipe = re.sub(r";(?:\s*\\\n)?\s*(?![^{}]*\})", "\n", recipe).replace("\\\n\t", "\\\n  ")
    recipe = recipe.replace("$$", "$").replace(" policies/profiles", " dist/policy-pack/profiles")
    return (
        recipe.replace("--policy-pack policies", "--policy-pack dist/policy-pack").rstrip("\n").splitlines()
    )


def _run_step(lines: Sequence[str], *, prefix: str) -> str:
    if len(lines) == 1:
        return f"{prefix}run: {lines[0]}"
    margin = " " * (len(prefix) + 2)
    return "\n".join([f"{prefix}run: |", *(f"{margin}{line}" for line in lines)])
