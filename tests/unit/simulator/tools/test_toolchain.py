"""Go is there and new enough, or the user learns which one to install."""

from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import parse_go_mod
from holdfast.simulator.tools.toolchain import (
    diagnose,
    find_go,
    go_environment,
    parse_go_version,
    require_go,
    tail,
)
from tests.support.tool_workspace import PretendedGo, executable

NEEDS = parse_go_mod(Path("tools/kubernetes"), "go 1.26.6\n")


def test_a_missing_go_names_what_needs_it_and_where_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"go is not on PATH.*helm, pulumi.*https://go\.dev/dl"):
        find_go(["helm", "pulumi"], {"PATH": str(tmp_path)})


def test_a_broken_go_is_told_with_its_own_words(tmp_path: Path) -> None:
    executable(tmp_path / "go", "#!/bin/sh\necho 'cannot find GOROOT' >&2\nexit 2\n")
    with pytest.raises(RehearsalError, match=r"does not work.*cannot find GOROOT"):
        find_go(["helm"], {"PATH": f"{tmp_path}:/bin"})


def test_an_old_go_is_refused_with_both_versions_and_the_mend(tmp_path: Path) -> None:
    go = find_go(["helm"], {"PATH": PretendedGo.install(tmp_path, version="go1.25.1").path})
    with pytest.raises(
        RehearsalError, match=r"is Go 1\.25\.1, and .*needs 1\.26\.6 or newer.*GOTOOLCHAIN=auto"
    ):
        require_go(go, [NEEDS])


def test_an_old_go_that_may_fetch_a_newer_one_is_left_to_it(tmp_path: Path) -> None:
    go = find_go(["helm"], {"PATH": PretendedGo.install(tmp_path, version="go1.25.1", toolchain="auto").path})
    require_go(go, [NEEDS])
    assert go.switches, "go itself fetches the toolchain its go.mod asks for"


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("go1.26.8", "1.26.8"),
        ("go1.26", "1.26.0"),
        ("go1.27rc1", "0.0.0"),
        ("devel go1.27-abc", "0.0.0"),
        ("go1.26.8-X:x", "1.26.8"),
    ],
)
def test_gos_own_ways_to_tell_its_version_are_read(text: str, version: str) -> None:
    assert str(parse_go_version(text)) == version, f"{text} is {version}"


def test_settings_for_other_machines_and_workspaces_do_not_leak_into_the_build() -> None:
    outer = {
        "GOOS": "windows",
        "GOFLAGS": "-mod=vendor",
        "GOWORK": "/x/go.work",
        "GOPROXY": "https://mine.test",
    }
    inner = go_environment(outer)
    assert "GOOS" not in inner, "these programs run here"
    assert inner["GOFLAGS"] == "-mod=readonly", "the pins decide, not a vendor folder"
    assert inner["GOWORK"] == "off", "a workspace around the checkout would replace the pins"
    assert inner["GOPROXY"] == "https://mine.test", "how modules are reached is the user's business"


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
