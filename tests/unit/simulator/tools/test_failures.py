"""A failed build ends in one message that says what to do."""

import pytest

from holdfast.simulator.tools.toolchain import diagnose, tail


def told(*lines: str) -> str:
    return diagnose("helm", lines, proxy="https://proxy.test", cache="/cache")


@pytest.mark.parametrize(
    "line",
    [
        "write /tmp/go-build1/b001/_pkg_.a: no space left on device",
        "[Errno 28] No space left on device: '/x/.tools/partial/helm'",
        "mkdir /home/u/.cache: disk quota exceeded",
    ],
)
def test_a_full_disk_says_how_much_to_free_and_that_work_is_kept(line: str) -> None:
    assert told("# some/package", line).startswith("the disk is full: helm"), "the cause comes first"
    assert "/cache" in told(line), "the cache is what can be emptied"


@pytest.mark.parametrize(
    "line",
    [
        'go: helm.sh/helm/v4@v4.2.4: Get "https://proxy.test/x": dial tcp: lookup proxy.test: no such host',
        "dial tcp 10.0.0.1:443: i/o timeout",
        "dial tcp 10.0.0.1:443: connect: connection refused",
        "reading https://proxy.test/x: 403 Forbidden ",
    ],
)
def test_an_unreachable_proxy_is_named_with_the_setting_that_changes_it(line: str) -> None:
    assert "GOPROXY is https://proxy.test" in told(line), "the user sees which proxy was asked"
    assert line.strip() in told(line), "and what it answered"


def test_a_forbidden_download_names_the_setting() -> None:
    message = told("go: x@v1: module lookup disabled by GOPROXY=off")
    assert "GOPROXY=off forbids" in message, "the setting is the cause, not the network"


def test_an_altered_module_is_never_taken_for_a_network_fault() -> None:
    message = told("verifying x@v1: checksum mismatch", "SECURITY ERROR", "dial tcp: i/o timeout")
    assert "not the one that go.sum names" in message, "trying again would be the wrong advice"


def test_a_killed_compiler_is_told_as_want_of_memory() -> None:
    assert "memory" in told("compile: signal: killed"), "Linux kills the largest process"


def test_an_ordinary_compiler_error_is_shown_without_the_progress_lines() -> None:
    lines = [
        "k8s.io/api/core/v1",
        "# some/package",
        "./x.go:3:1: undefined: Y",
        "go: downloading a v1",
        "other/pkg",
    ]
    assert tail(lines) == ["# some/package", "./x.go:3:1: undefined: Y"], (
        "thousands of package names say nothing"
    )
    assert "could not be built" in told(*lines), "no cause is invented"


def test_the_last_lines_are_kept_when_there_are_many() -> None:
    lines = [f"error number {n}" for n in range(100)]
    assert tail(lines)[-1] == "error number 99", "the newest line tells why it ended"
    assert len(tail(lines)) < 20, "a screenful at most"
