"""Go is there and new enough, or the user learns which one to install."""

from pathlib import Path

import pytest

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.catalog import parse_go_mod
from holdfast.simulator.tools.toolchain import find_go, go_environment, parse_go_version, require_go
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
