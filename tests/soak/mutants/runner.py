"""Applies small semantic changes to a copy of the sources, one at a time, and checks that unit tests fail.

A mutation that no test notices has survived: the behavior it changes is not tested. The lists of mutations are the YAML
files beside this module, one per area; `areas.yaml` maps folders to the tests that must notice a change in them.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from enum import StrEnum, auto
from pathlib import Path
from queue import Queue
from typing import Any, Final, cast

import yaml

CHECKOUT: Final = Path(__file__).resolve().parents[3]
LISTS: Final = Path(__file__).parent
_AREAS: Final = "areas.yaml"
_WANTED: Final = 0.95
_TIMEOUT_SECONDS: Final = 600
_WORKERS: Final = 2
_MARKERS: Final = "not engine and not cluster and not registry and not soak"
# pytest's exit codes: some tests failed; the collection failed, which a change in a constant can cause.
_NOTICED: Final = frozenset({1, 2})


class Verdict(StrEnum):
    """What became of a mutation."""

    KILLED = auto()
    SURVIVED = auto()
    STALE = auto()  #: its text is not, or not exactly once, in the file: fix the list
    UNTESTABLE = auto()  #: the tests fail, or do not run, without the mutation


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One change: `before` occurs exactly once in `file` and becomes `after`; `breaks` says what is wrong then."""

    area: str
    file: str
    before: str
    after: str
    breaks: str
    tests: tuple[str, ...]

    def problem(self, root: Path) -> str | None:
        """Return why the mutation cannot be applied to the sources in `root`, None if it can."""
        path = root / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        count = path.read_text(encoding="utf-8").count(self.before)
        return None if count == 1 else f"{self.before!r} occurs {count} times in {self.file}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """A mutation and its verdict, with the reason for any verdict other than killed."""

    mutation: Mutation
    verdict: Verdict
    reason: str = ""

    @property
    def line(self) -> str:
        """The result in one line."""
        what = f"{self.mutation.area}: {self.mutation.file}: {self.mutation.breaks}"
        return f"{self.verdict:<10}  {what}{f' ({self.reason})' if self.reason else ''}"


@dataclass(kw_only=True)
class Copies:
    """Copies of the checkout, each used by one worker at a time."""

    root: Path
    free: "Queue[Path]" = field(default_factory=lambda: Queue[Path]())

    def make(self, count: int) -> None:
        """Copy the files that git knows, and those that it would add."""
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=True,
        )
        for number in range(count):
            copy = self.root / str(number)
            for name in listed.stdout.splitlines():
                source, target = CHECKOUT / name, copy / name
                if source.exists():
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy2(source, target, follow_symlinks=False)
            self.free.put(copy)


def run_mutants(*, area: str | None = None, only: str | None = None, check_only: bool = False) -> int:
    """Run the mutations, print a line for each, and return 0 if enough of them are killed."""
    mutations = [
        each
        for each in read_lists()
        if (area is None or each.area == area) and (only is None or only in f"{each.file} {each.breaks}")
    ]
    stale = [
        Result(mutation=each, verdict=Verdict.STALE, reason=problem)
        for each in mutations
        if (problem := each.problem(CHECKOUT))
    ]
    for result in stale:
        print(result.line, flush=True)
    if check_only:
        print(f"{len(mutations)} mutations, {len(stale)} stale")
        return 1 if stale else 0
    applicable = [each for each in mutations if each.problem(CHECKOUT) is None]
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copies = Copies(root=Path(folder))
        copies.make(_WORKERS)
        results = [*stale, *_run_all(applicable, copies)]
    return _summarize(results)


def _run_all(mutations: Sequence[Mutation], copies: Copies) -> Iterator[Result]:
    with ThreadPoolExecutor(_WORKERS) as pool:
        suites = sorted({each.tests for each in mutations})
        passing = dict(
            zip(suites, pool.map(lambda tests: _in_a_copy(copies, tests, None), suites), strict=True)
        )
        for result in pool.map(lambda each: _result(each, passing[each.tests], copies), mutations):
            print(result.line, flush=True)
            yield result


def _result(mutation: Mutation, unchanged: int, copies: Copies) -> Result:
    if unchanged:
        reason = f"{' '.join(mutation.tests)}: exit code {unchanged} without the change"
        return Result(mutation=mutation, verdict=Verdict.UNTESTABLE, reason=reason)
    code = _in_a_copy(copies, mutation.tests, mutation)
    return Result(mutation=mutation, verdict=Verdict.KILLED if code in _NOTICED else Verdict.SURVIVED)


def _in_a_copy(copies: Copies, tests: Sequence[str], mutation: Mutation | None) -> int:
    """Return pytest's exit code in a copy with the mutation; a timeout counts as a failure of the tests."""
    copy = copies.free.get()
    try:
        if mutation is None:
            return _pytest(copy, tests)
        path = copy / mutation.file
        original = path.read_text(encoding="utf-8")
        path.write_text(original.replace(mutation.before, mutation.after), encoding="utf-8")
        try:
            return _pytest(copy, tests)
        finally:
            path.write_text(original, encoding="utf-8")
    finally:
        copies.free.put(copy)


def _pytest(copy: Path, tests: Sequence[str]) -> int:
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-m", _MARKERS, *tests]
    # Bytecode is cached by time and size: a mutation of the same size within a second would not be seen.
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "HOLDFAST_SEED": "6"}
    try:
        ended = subprocess.run(
            command, cwd=copy, env=variables, capture_output=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return 1
    return ended.returncode


def _summarize(results: Sequence[Result]) -> int:
    survivors = [each for each in results if each.verdict is not Verdict.KILLED]
    killed = len(results) - len(survivors)
    print()
    for area in sorted({each.mutation.area for each in results}):
        of_area = [each for each in results if each.mutation.area == area]
        dead = sum(each.verdict is Verdict.KILLED for each in of_area)
        print(f"{area:<16}  {dead} of {len(of_area)} killed")
    share = killed / len(results) if results else 0.0
    print(f"{killed} of {len(results)} killed: {share:.0%}; at least {_WANTED:.0%} is required")
    for each in survivors:
        print(f"  {each.line}")
    return 0 if share >= _WANTED else 1


def read_lists() -> tuple[Mutation, ...]:
    """Return every mutation of every list."""
    areas = cast("Mapping[str, Sequence[str]]", yaml.safe_load((LISTS / _AREAS).read_text(encoding="utf-8")))
    found: list[Mutation] = []
    for path in sorted(LISTS.glob("*.yaml")):
        if path.name != _AREAS:
            entries = cast("Iterable[dict[str, Any]]", yaml.safe_load(path.read_text(encoding="utf-8")) or ())
            found += [_mutation(path.stem, entry, areas) for entry in entries]
    return tuple(found)


def _mutation(area: str, entry: dict[str, Any], areas: Mapping[str, Sequence[str]]) -> Mutation:
    tests = entry.get("tests") or _tests_of(entry["file"], areas)
    return Mutation(
        area=area,
        file=entry["file"],
        before=entry["before"],
        after=entry["after"],
        breaks=entry["breaks"],
        tests=tuple(tests),
    )


def _tests_of(file: str, areas: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the tests of the longest path in `areas` that the file begins with."""
    fitting = [path for path in areas if file.startswith(path)]
    if not fitting:
        raise ValueError(
            f"{_AREAS} has no path for {file}: add one with the tests that must notice a change in it"
        )
    return areas[max(fitting, key=len)]
