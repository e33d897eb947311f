"""A missing or old Go, and each failure of a build, is explained with its fix."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.tools.catalog import parse_go_mod
from pulumi_holdfast.rehearsal.tools.toolchain import (
    diagnose,
    find_go,
    go_environment,
    parse_go_version,
    require_go,
    tail,
)
from tests.support.fakes.go_toolchain import FakeGo, executable

NEEDS = parse_go_mod(Path("tools/kubernetes"), "go 1.26.6\n")


def test_missing_or_broken_go_is_reported(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"go is not on PATH.*helm, pulumi.*https://go\.dev/dl"):
        find_go(["helm", "pulumi"], {"PATH": str(tmp_path)})
    executable(tmp_path / "go", "#!/bin/sh\necho 'cannot find GOROOT' >&2\nexit 2\n")
    with pytest.raises(RehearsalError, match=r"does not work.*cannot find GOROOT"):
        find_go(["helm"], {"PATH": f"{tmp_path}:/bin"})


def test_old_go_is_refused_unless_it_can_download_a_newer_one(tmp_path: Path) -> None:
    go = find_go(["helm"], {"PATH": FakeGo.install(tmp_path, version="go1.25.1").path})
    with pytest.raises(
        RehearsalError, match=r"is Go 1\.25\.1, but .*needs 1\.26\.6 or newer.*GOTOOLCHAIN=auto"
    ):
        require_go(go, [NEEDS])
    go = find_go(
        ["helm"], {"PATH": FakeGo.install(tmp_path / "auto", version="go1.25.1", toolchain="auto").path}
    )
    require_go(go, [NEEDS])
    assert go.switches


def test_version_of_go_is_parsed() -> None:
    releases = {"go1.26.8": "1.26.8", "go1.26": "1.26.0", "go1.26.8-X:x": "1.26.8"}
    for text, version in {**releases, "go1.27rc1": "0.0.0", "devel go1.27-abc": "0.0.0"}.items():
        assert str(parse_go_version(text)) == version, f"{text} is {version}"


def test_environment_of_the_user_does_not_affect_the_build() -> None:
    outer = {
        "GOOS": "windows",
        "GOFLAGS": "-mod=vendor",
        "GOWORK": "/x/go.work",
        "GOPROXY": "https://mine.test",
    }
    inner = go_environment(outer)
    assert "GOOS" not in inner
    assert inner["GOFLAGS"] == "-mod=readonly"
    assert inner["GOWORK"] == "off", "a workspace would replace the pins"
    assert inner["GOPROXY"] == "https://mine.test"


def message(*lines: str) -> str:
    return diagnose("helm", lines, proxy="https://proxy.test", cache="/cache")


def test_full_disk_and_unreachable_proxy_are_reported_with_the_fix() -> None:
    for line in (
        "write /tmp/go-build1/b001/_pkg_.a: no space left on device",
        "[Errno 28] No space left on device: '/x/.tools/partial/helm'",
        "mkdir /home/u/.cache: disk quota exceeded",
    ):
        text = message("# some/package", line)
        assert text.startswith("the disk is full: helm")
        assert "/cache" in text
    for line in (
        'go: helm.sh/helm/v4@v4.2.4: Get "https://proxy.test/x": dial tcp: lookup proxy.test: no such host',
        "dial tcp 10.0.0.1:443: i/o timeout",
        "dial tcp 10.0.0.1:443: connect: connection refused",
        "reading https://proxy.test/x: 403 Forbidden ",
    ):
        assert "GOPROXY is https://proxy.test" in message(line)
        assert line.strip() in message(line)


def test_failed_build_is_reported_by_its_cause_or_last_lines() -> None:
    text = message("go: x@v1: module lookup disabled by GOPROXY=off")
    assert "GOPROXY=off forbids" in text
    text = message("verifying x@v1: checksum mismatch", "SECURITY ERROR", "dial tcp: i/o timeout")
    assert "does not match go.sum" in text
    assert "memory" in message("compile: signal: killed")
    error = ["# some/package", "./x.go:3:1: undefined: Y"]
    lines = ["k8s.io/api/core/v1", *error, "go: downloading a v1", "other/pkg"]
    assert tail(lines) == error
    assert "the build of helm failed" in message(*lines)
    lines = [f"error number {n}" for n in range(100)]
    assert tail(lines)[-1] == "error number 99"
    assert len(tail(lines)) < 20
