"""Which version of a program found on a machine does the work of the pinned one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.simulator.tools.catalog import Accepts, Version, parse_version

numbers = st.integers(min_value=0, max_value=10_000)
versions = st.builds(Version, major=numbers, minor=numbers, patch=numbers)


def version(text: str) -> Version:
    parsed = parse_version(text)
    assert parsed is not None, f"{text} is a version, or the test is wrong"
    return parsed


@given(versions)
def test_a_version_reads_back_as_it_is_written(one: Version) -> None:
    assert parse_version(f"v{one}") == one, "a version and its text are the same thing"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("v3.245.0\n", "3.245.0"),
        ("Kubernetes v1.36.3\n", "1.36.3"),
        ("etcd Version: 3.6.8\nGit SHA: Not provided\nGo Version: go1.26.8\n", "3.6.8"),
        ("kwok version v0.8.0 go1.26.8 (linux/amd64)\n", "0.8.0"),
        ("Client Version: v1.36.3\nKustomize Version: v5.8.1\n", "1.36.3"),
        ("v1.7.12\ninstalled by building from source\n", "1.7.12"),
    ],
)
def test_the_version_is_found_in_what_each_program_prints(answer: str, found: str) -> None:
    assert str(parse_version(answer)) == found, f"{answer!r} tells {found}"


@pytest.mark.parametrize("answer", ["", "unknown flag: --version", "v1.36", "v3.246.0-alpha.1"])
def test_what_is_no_release_is_no_version(answer: str) -> None:
    assert parse_version(answer) is None, f"{answer!r} promises nothing that could be relied on"


@given(versions, versions)
def test_an_exact_pin_takes_nothing_else(found: Version, pin: Version) -> None:
    assert Accepts.EXACT.good(found, pin) == (found == pin), "these programs must be the very version tested"


@given(versions)
def test_every_rule_takes_the_pin_itself(pin: Version) -> None:
    assert all(rule.good(pin, pin) for rule in Accepts), "the pinned version is what all was tested with"


@pytest.mark.parametrize(
    ("found", "good"),
    [("3.245.0", True), ("3.246.1", True), ("3.244.9", False), ("4.0.0", False), ("2.999.0", False)],
)
def test_a_stable_command_line_may_be_newer_within_its_major(found: str, *, good: bool) -> None:
    assert Accepts.SAME_MAJOR.good(version(found), version("3.245.0")) is good, f"{found} against 3.245.0"


@pytest.mark.parametrize(
    ("found", "good"), [("1.35.9", True), ("1.37.0", True), ("1.34.0", False), ("1.38.0", False)]
)
def test_kubectl_may_be_one_minor_away_as_its_skew_policy_says(found: str, *, good: bool) -> None:
    assert Accepts.NEIGHBOUR_MINOR.good(version(found), version("1.36.3")) is good, f"{found} against 1.36.3"


def test_the_wanted_versions_are_told_in_words() -> None:
    assert Accepts.SAME_MAJOR.wanted(version("3.245.0")) == "3.245.0 or newer, below 4", "a user reads this"
