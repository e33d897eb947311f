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
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
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
    ERROR = auto()  #: the tests do not run or fail without the mutation


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


def run_mutants(*, area: str | None = None, only: str | None = None) -> int:
    """Run the mutations, print a line for each, and return 0 if enough of them are killed."""
    mutations = [
        each
        for each in read_lists()
        if (area is None or each.area == area) and (only is None or only in f"{each.file} {each.breaks}")
    ]
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="holdfast-mutants-") as folder:
        laboratory = Laboratory(Path(folder))
        with ThreadPoolExecutor(_WORKERS) as pool:
            try:
                for result in pool.map(laboratory.judge, mutations):
                    print(result.line, flush=True)
                    results.append(result)
            except BaseException:
                # Start no further run after an interrupt.
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return _summarize(results)


class Laboratory:
    """Judges mutations in copies of the checkout, each used by one worker at a time."""

    def __init__(self, folder: Path) -> None:
        self._free = Queue[Path]()
        #: Whether tests pass without a mutation, by their paths and markers.
        self._sound: dict[tuple[tuple[str, ...], str], bool] = {}
        for number in range(_WORKERS):
            self._free.put(_copy(folder / str(number)))

    def judge(self, mutation: Mutation) -> Result:
        """Run the unit tests of a mutation, and its cluster tests if those notice nothing."""
        if problem := mutation.problem(CHECKOUT):
            return Result(mutation=mutation, verdict=Verdict.STALE, reason=problem)
        copy = self._free.get()
        try:
            found = self._judge(copy, mutation, mutation.tests, _UNIT)
            if found.verdict is Verdict.SURVIVED and mutation.cluster:
                return self._judge(copy, mutation, mutation.cluster, _CLUSTER)
            return found
        finally:
            self._free.put(copy)

    def _judge(self, copy: Path, mutation: Mutation, tests: tuple[str, ...], markers: str) -> Result:
        if not self._is_sound(copy, tests, markers):
            reason = f"{' '.join(tests)}: the tests fail without the mutation"
            return Result(mutation=mutation, verdict=Verdict.ERROR, reason=reason)
        path = copy / mutation.file
        original = path.read_text(encoding="utf-8")
        changed = original.replace(mutation.before, mutation.after)
        try:
            ast.parse(changed)  # any test fails on a module that cannot be imported
            path.write_text(changed, encoding="utf-8")
            code = _pytest(copy, tests, markers)
        except SyntaxError as error:
            return Result(mutation=mutation, verdict=Verdict.ERROR, reason=str(error))
        except subprocess.TimeoutExpired:
            # The mutation causes an endless loop, or nearly one.
            return Result(mutation=mutation, verdict=Verdict.KILLED)
        finally:
            path.write_text(original, encoding="utf-8")
        if code in _NOTICED | {_PASSED}:
            return Result(mutation=mutation, verdict=Verdict.KILLED if code else Verdict.SURVIVED)
        return Result(mutation=mutation, verdict=Verdict.ERROR, reason=f"pytest ended with code {code}")

    def _is_sound(self, copy: Path, tests: tuple[str, ...], markers: str) -> bool:
        if (tests, markers) not in self._sound:
            try:
                self._sound[tests, markers] = _pytest(copy, tests, markers) == _PASSED
            except subprocess.TimeoutExpired:
                self._sound[tests, markers] = False
        return self._sound[tests, markers]


def _copy(folder: Path) -> Path:
    """Copy the files that git knows, and those that it would add."""
    listing = ["git", "ls-files", "-co", "--exclude-standard"]
    listed = subprocess.run(listing, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    for name in listed.stdout.splitlines():
        source, target = CHECKOUT / name, folder / name
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(source, target, follow_symlinks=False)
    (folder / ".tools").symlink_to(CHECKOUT / ".tools")
    return folder


def _pytest(copy: Path, tests: Sequence[str], markers: str) -> int:
    """Run tests until one fails; return pytest's exit code."""
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "--hypothesis-profile=mutants",
    ]
    path = os.pathsep.join((str(copy / "components"), str(copy)))
    # Bytecode is cached by time and size: a mutation of the same size within a second would not be seen.
    variables = {**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1", "HOLDFAST_SEED": "6"}
    ended = subprocess.run(
        [*command, "-m", markers, *tests],
        cwd=copy,
        env=variables,
        capture_output=True,
        check=False,
        timeout=_TIMEOUT_SECONDS,
    )
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


def read_areas() -> Mapping[str, Sequence[str]]:
    """Return the tests that must notice a change, by the path of what changes."""
    return cast("Mapping[str, Sequence[str]]", yaml.safe_load((LISTS / _AREAS).read_text(encoding="utf-8")))


def read_lists() -> tuple[Mutation, ...]:
    """Return every mutation of every list."""
    areas = read_areas()
    return tuple(
        _mutation(path.stem, entry, areas)
        for path in sorted(LISTS.glob("*.yaml"))
        if path.name != _AREAS
        for entry in cast("Sequence[dict[str, Any]]", yaml.safe_load(path.read_text(encoding="utf-8")) or ())
    )


def row_of(file: str, areas: Mapping[str, Sequence[str]]) -> str:
    """Return the longest path of the areas that fits a file."""
    fitting = [path for path in areas if file.startswith(path)]
    if not fitting:
        raise ValueError(
            f"{_AREAS} has no path for {file}: add one with the tests that must notice a change in it"
        )
    return max(fitting, key=len)


def _mutation(area: str, entry: dict[str, Any], areas: Mapping[str, Sequence[str]]) -> Mutation:
    tests = tuple(areas[row_of(entry["file"], areas)])
    given: dict[str, Any] = {**entry, "tests": tests, "cluster": tuple(entry.get("cluster", ()))}
    return Mutation(area=area, **given)
