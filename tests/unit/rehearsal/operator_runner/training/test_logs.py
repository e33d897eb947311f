"""The logs of training pods: where they are, and what `kubectl logs` gets."""

import asyncio
import ssl
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.operator_runner.training.logs import (
    LogServer,
    attempts_of,
    log_of,
    logs_of_namespace,
)

POD: Json = {"metadata": {"namespace": "vision", "name": "a", "uid": "u-1"}}


def never(namespace: str, name: str) -> bool:
    """No pod runs."""
    del namespace, name
    return False


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for attempt, text in enumerate(("first\n", "one\ntwo\nthree\n")):
        log = log_of(tmp_path, POD, "train", attempt)
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text(text)
    return tmp_path


def test_each_attempt_of_a_container_has_a_log(logs: Path) -> None:
    assert [path.name for path in attempts_of(logs, "vision", "a", "train")] == ["0.log", "1.log"]
    assert attempts_of(logs, "vision", "other", "train") == []
    assert {uid for uid, _ in logs_of_namespace(logs, "vision")} == {"u-1"}


class _Answer:
    """Takes the place of the connection to the API server."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    async def drain(self) -> None:
        return

    def close(self) -> None:
        return


def answered(logs: Path, target: str) -> str:
    async def ask() -> str:
        reader, answer = asyncio.StreamReader(), _Answer()
        reader.feed_data(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        server = LogServer(logs, never)
        await server.handle(reader, cast("asyncio.StreamWriter", answer))
        return answer.data.decode()

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("", "one\ntwo\nthree\n"),
        ("?previous=true", "first\n"),
        ("?tailLines=2", "two\nthree\n"),
        ("?tailLines=0", ""),
        ("?limitBytes=5", "one\nt"),
        ("?follow=true", "one\ntwo\nthree\n"),
    ],
)
def test_the_latest_attempt_is_read_with_the_options_of_kubectl(logs: Path, query: str, text: str) -> None:
    head, _, body = answered(logs, f"/containerLogs/vision/a/train{query}").partition("\r\n\r\n")
    assert head.startswith("HTTP/1.1 200 OK")
    assert body == text


@pytest.mark.parametrize("target", ["/containerLogs/vision/b/train", "/exec/vision/a/train"])
def test_what_is_not_there_is_not_found(logs: Path, target: str) -> None:
    assert answered(logs, target).startswith("HTTP/1.1 404 Not Found")


def test_a_certificate_is_needed(logs: Path) -> None:
    with pytest.raises((OSError, ssl.SSLError)):
        asyncio.run(LogServer(logs, never).serve(logs / "s", logs / "crt", logs / "key"))
