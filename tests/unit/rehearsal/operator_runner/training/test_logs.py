"""The logs of training pods: where they are, and what `kubectl logs` gets."""

import asyncio
from pathlib import Path
from typing import cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.operator_runner.training.logs import LogServer, log_of

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
