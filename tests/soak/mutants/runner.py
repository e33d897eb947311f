"""Applies small semantic changes to a copy of the sources, one at a time, and checks that tests fail.

A mutation that no test notices has survived: the behavior it changes is not tested. The lists of mutations are the YAML
files beside this module, one per area; `areas.yaml` maps files and folders to the unit tests that must notice a change in
them. A mutation that names `cluster` tests, and that unit tests cannot notice, is run against those: only a real API server
evaluates CEL.
"""

import ast
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum, auto
from functools import partial
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
_UNIT: Final = "not engine and not cluster and not registry and not soak"
_CLUSTER: Final = "(engine or cluster) and not soak"
# pytest's exit codes: all tests passed; some failed; the collection failed, which a change in a constant can cause.
# Others mean that no test ran: a wrong path, no test with the marker, an error in pytest itself.
_PASSED: Final = 0
_NOTICED: Final = frozenset({1, 2})


class Verdict(StrEnum):
    """What became of a mutation."""

    KILLED = auto()
    SURVIVED = auto()
    STALE = auto()  #: its text is not, or not exactly once, in the file: fix the list
    ERROR = auto()  #: the tests do not run, with the mutation or without it


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """One change: `before` occurs exactly once in `file` and becomes `after`; `breaks` says what is wrong then."""

    area: str
    file: str
    before: str
    after: str
    breaks: str
    tests: tuple[str, ...]
    cluster: tuple[str, ...] = ()

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
            (copy / ".tools").symlink_to(CHECKOUT / ".tools")
            self.free.put(copy)


def run_mutants(*, area: str | None = None, only: str | None = None) -> int:
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
    applicable = [each for each in mutations if each.problem(CHECKOUT) is None]
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        copies = Copies(root=Path(folder))
        copies.make(_WORKERS)
        results = [*stale, *_run_all(applicable, copies)]
    return _summarize(results)


def _run_all(mutations: Sequence[Mutation], copies: Copies) -> Iterator[Result]:
    with ThreadPoolExecutor(_WORKERS) as pool, _cancelling(pool):
        unit = {each: each.tests for each in mutations}
        unnoticed: list[Mutation] = []
        for result in _run_tests(pool, copies, unit, _UNIT):
            if result.verdict is Verdict.SURVIVED and result.mutation.cluster:
                unnoticed.append(result.mutation)
            else:
                yield result
        yield from _run_tests(pool, copies, {each: each.cluster for each in unnoticed}, _CLUSTER)


@contextmanager
def _cancelling(pool: ThreadPoolExecutor) -> Generator[None]:
    """Start no further run after an interrupt."""
    try:
        yield
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _run_tests(
    pool: ThreadPoolExecutor, copies: Copies, suites: Mapping[Mutation, tuple[str, ...]], markers: str
) -> Iterator[Result]:
    """Run each mutation against its tests, after these tests without a mutation."""
    found = [Suite(tests=tests, markers=markers) for tests in sorted(set(suites.values()))]
    baselines = dict(zip(found, pool.map(partial(_baseline, copies), found), strict=True))
    for baseline in baselines.values():
        if baseline.failing:
            print(f"left out, since they fail without a mutation: {' '.join(baseline.failing)}", flush=True)
    runs = [Suite(tests=tests, markers=markers) for tests in suites.values()]
    for result in pool.map(partial(_result, copies), [baselines[each] for each in runs], suites, runs):
        print(result.line, flush=True)
        yield result


@dataclass(frozen=True, kw_only=True)
class Suite:
    """Tests that pytest runs together: files and folders, and an expression of markers."""

    tests: tuple[str, ...]
    markers: str


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """The tests without a mutation: whether any of them passes, and those that fail."""

    is_usable: bool
    failing: tuple[str, ...] = ()

    @property
    def options(self) -> tuple[str, ...]:
        """The options that leave out the failing tests."""
        return tuple(
            option
            for each in self.failing
            for option in (("--deselect", each) if "::" in each else (f"--ignore={each}",))
        )


def _baseline(copies: Copies, suite: Suite) -> Baseline:
    copy = copies.free.get()
    try:
        return _measured_baseline(copy, suite)
    except subprocess.TimeoutExpired:
        return Baseline(is_usable=False)
    finally:
        copies.free.put(copy)


def _measured_baseline(copy: Path, suite: Suite) -> Baseline:
    first = _pytest(copy, suite, ["--tb=no", "-rfE", "--continue-on-collection-errors"])
    if first.returncode == _PASSED:
        return Baseline(is_usable=True)
    failing = tuple(
        line.split(" ", 1)[1].split(" - ")[0]
        for line in first.stdout.splitlines()
        if line.startswith(("FAILED ", "ERROR "))
    )
    baseline = Baseline(is_usable=True, failing=failing)
    again = _pytest(copy, suite, ["-x", *baseline.options])
    return Baseline(is_usable=again.returncode == _PASSED, failing=failing)


def _result(copies: Copies, baseline: Baseline, mutation: Mutation, suite: Suite) -> Result:
    if not baseline.is_usable:
        reason = f"{' '.join(suite.tests)}: no usable run without the mutation"
        return Result(mutation=mutation, verdict=Verdict.ERROR, reason=reason)
    copy = copies.free.get()
    path = copy / mutation.file
    original = path.read_text(encoding="utf-8")
    changed = original.replace(mutation.before, mutation.after)
    try:
        ast.parse(changed)  # any test fails on a module that cannot be imported
        path.write_text(changed, encoding="utf-8")
        finished = _pytest(copy, suite, ["-x", *baseline.options])
        if finished.returncode in _NOTICED:
            return Result(mutation=mutation, verdict=Verdict.KILLED)
        if finished.returncode == _PASSED:
            return Result(mutation=mutation, verdict=Verdict.SURVIVED)
        reason = f"pytest ended with code {finished.returncode}: {finished.stderr.strip()[-200:]}"
        return Result(mutation=mutation, verdict=Verdict.ERROR, reason=reason)
    except SyntaxError as error:
        return Result(mutation=mutation, verdict=Verdict.ERROR, reason=str(error))
    except subprocess.TimeoutExpired:
        # The mutation causes an endless loop, or nearly one.
        return Result(mutation=mutation, verdict=Verdict.KILLED)
    finally:
        path.write_text(original, encoding="utf-8")
        copies.free.put(copy)


def _pytest(copy: Path, suite: Suite, options: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--hypothesis-profile=mutants"]
    # Bytecode is cached by time and size: a mutation of the same size within a second would not be seen.
    variables = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1", "HOLDFAST_SEED": "6"}
    return subprocess.run(
        [*command, "-m", suite.markers, *options, *suite.tests],
        cwd=copy,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )


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
        cluster=tuple(entry.get("cluster") or ()),
    )


def _tests_of(file: str, areas: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """Return the tests of the longest path in `areas` that the file begins with."""
    fitting = [path for path in areas if file.startswith(path)]
    if not fitting:
        raise ValueError(
            f"{_AREAS} has no path for {file}: add one with the tests that must notice a change in it"
        )
    return areas[max(fitting, key=len)]
