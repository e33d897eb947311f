"""What a failed `go` command means for the user, told from its output alone."""

import re
from collections.abc import Sequence

#: Lines that say what is being done, not what went wrong: the path of a compiled package, a download.
_PROGRESS = re.compile(r"^(?:\S+|go: downloading .*|# get \S+)$")
_TAIL_LINES = 12

_DISK_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)
_NO_MEMORY = re.compile(r"signal: killed|cannot allocate memory|out of memory", re.IGNORECASE)
_ALTERED = re.compile(r"checksum mismatch|SECURITY ERROR")
_LOOKUP_OFF = re.compile(r"module lookup disabled by GOPROXY=off")
_NO_NETWORK = re.compile(
    r"dial tcp|no such host|i/o timeout|connection re(?:fused|set)|network is unreachable|TLS handshake"
    r"|proxyconnect|x509: |unexpected EOF|: (?:40[37]|429|5\d\d) |server misbehaving"
)


def tail(lines: Sequence[str]) -> list[str]:
    """The last lines that speak of the failure, oldest first."""
    told = [line.rstrip() for line in lines if line.strip() and not _PROGRESS.match(line.strip())]
    return told[-_TAIL_LINES:]


def diagnose(name: str, lines: Sequence[str], *, proxy: str, cache: str) -> str:
    """Return one message for the user about a `go` command that failed while making `name`.

    `lines` is its output, `proxy` the GOPROXY in force and `cache` the folder of Go's build cache.
    """
    output = "\n".join(lines)
    if _DISK_FULL.search(output):
        return (
            f"the disk is full: {name} could not be made. Free about 10 GB for the build (Go's cache is {cache}, "
            f"`go clean -cache` empties it), then run `make tools` again: what is finished stays"
        )
    if _ALTERED.search(output):
        return _with_tail(
            f"{name}: a downloaded module is not the one that go.sum names; do not use it", lines
        )
    if _LOOKUP_OFF.search(output):
        return f"{name} needs modules that are not on this machine, and GOPROXY=off forbids to fetch them: set GOPROXY"
    if _NO_NETWORK.search(output):
        fix = f"GOPROXY is {proxy}: check the network or name a reachable proxy in GOPROXY, then run `make tools` again"
        return _with_tail(f"{name}: Go modules could not be fetched. {fix}", lines)
    if _NO_MEMORY.search(output):
        return _with_tail(
            f"{name}: the compiler was killed, most likely for want of memory (about 4 GB needed)", lines
        )
    return _with_tail(f"{name} could not be built", lines)


def _with_tail(message: str, lines: Sequence[str]) -> str:
    return "\n".join((message, *(f"  | {line}" for line in tail(lines))))
