"""Processes are found by what they are, die with the host, and are reached through the proxy."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import psutil

from holdfast.simulator.operator_runner import launch
from holdfast.simulator.operator_runner.connect_proxy import ConnectProxy, Route
from holdfast.simulator.operator_runner.operator_runner import RunnerRecord, read_record
from holdfast.simulator.operator_runner.process import (
    LARGEST_LOG_BYTES,
    Command,
    SupervisedProcess,
    open_log,
)

STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def python(code: str, folder: Path) -> Command:
    return Command(
        program=Path(sys.executable),
        args=("-S", "-c", code),
        variables={},
        folder=folder,
        log=folder / "logs" / "p.log",
    )


def test_a_record_proves_that_the_process_is_the_one_recorded(tmp_path: Path) -> None:
    record = RunnerRecord.of(psutil.Process(), "https://127.0.0.1:1", ready=True)
    record.write(tmp_path / "host.json")
    assert read_record(tmp_path / "host.json") == record, "what is written is read"
    assert record.process() == psutil.Process(), "this process still runs"
    recycled = replace(record, started=record.started - 3600)
    assert recycled.process() is None, "a process that got the pid later is another"


def test_a_record_that_makes_no_sense_is_none(tmp_path: Path) -> None:
    path = tmp_path / "host.json"
    assert read_record(path) is None, "there is none"
    for text in ("", "[]", "{}", json.dumps({"pid": "x", "started": 1, "server": "s", "ready": True})):
        path.write_text(text)
        assert read_record(path) is None, f"{text!r} names no host"


def test_a_process_writes_its_log_and_tells_its_exit_code(tmp_path: Path) -> None:
    async def run() -> int:
        process = await SupervisedProcess.start(python("import sys; print('said'); sys.exit(3)", tmp_path))
        return await process.ended()

    assert asyncio.run(run()) == 3, "the exit code of the program, not of what started it"
    assert "said" in (tmp_path / "logs" / "p.log").read_text(), "its output is kept"


def test_a_process_that_does_not_end_when_asked_is_killed(tmp_path: Path) -> None:
    async def run() -> int:
        process = await SupervisedProcess.start(python(STUBBORN, tmp_path))
        while "up" not in (tmp_path / "logs" / "p.log").read_text().splitlines():
            await asyncio.sleep(0.01)
        await process.end(grace_seconds=0.05)
        return await process.ended()

    assert asyncio.run(run()) == -signal.SIGKILL, "the grace was over"


def test_a_process_dies_with_its_host_even_when_that_is_killed(tmp_path: Path) -> None:
    child = "import time; time.sleep(60)"
    host = (
        "import subprocess, sys, os, time\n"
        f"p = subprocess.Popen([sys.executable, '-S', {launch.__file__!r}, str(os.getpid()), sys.executable, '-S', '-c', {child!r}])\n"
        "print(p.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-S", "-c", host], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None, "it was asked for"
        orphan = psutil.Process(int(parent.stdout.readline()))
        while "time.sleep" not in " ".join(orphan.cmdline()) or "launch" in " ".join(orphan.cmdline()):
            threading.Event().wait(0.01)  # until it has become the program
        os.kill(parent.pid, signal.SIGKILL)
    gone, alive = psutil.wait_procs([orphan], timeout=10)
    assert (gone, alive) == ([orphan], []), "the kernel ended it with its parent"


def test_a_log_that_has_grown_large_is_put_aside(tmp_path: Path) -> None:
    log = tmp_path / "logs" / "p.log"
    log.parent.mkdir()
    with log.open("wb") as file:
        file.truncate(LARGEST_LOG_BYTES + 1)
    open_log(log).close()
    assert log.stat().st_size == 0, "a new one begins"
    assert log.with_suffix(".log.1").exists(), "the old one can still be read"


async def through_proxy(socket: Path, answer: Route, request: bytes) -> bytes:
    """Send `request` to a proxy that routes everything as `answer` says; returns all that comes back."""

    async def route(_host: str, _port: int) -> Route:
        return answer

    server = await ConnectProxy(route).serve(socket)
    reader, writer = await asyncio.open_unix_connection(str(socket))
    writer.write(request)
    writer.write_eof()
    said = await reader.read()
    writer.close()
    server.close()
    return said


def test_a_connection_goes_through_to_the_process_and_back(tmp_path: Path) -> None:
    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        writer.close()

    async def run() -> bytes:
        upstream = await asyncio.start_server(echo, "127.0.0.1", 0)
        port = int(upstream.sockets[0].getsockname()[1])
        said = await through_proxy(
            tmp_path / "s", Route(port=port), b"CONNECT 10.0.0.7:443 HTTP/1.1\r\n\r\nhello"
        )
        upstream.close()
        return said

    assert asyncio.run(run()) == b"HTTP/1.1 200 Connection established\r\n\r\nHELLO", (
        "both ways, bytes unchanged"
    )


def test_a_destination_without_a_process_is_answered_with_502_and_the_reason(tmp_path: Path) -> None:
    said = asyncio.run(
        through_proxy(tmp_path / "s", Route(reason="nobody there"), b"CONNECT 10.0.0.8:1 HTTP/1.1\r\n\r\n")
    )
    assert said == b"HTTP/1.1 502 nobody there\r\n\r\n", "the API server shows this in its error"


def test_a_process_that_went_is_answered_with_502(tmp_path: Path) -> None:
    said = asyncio.run(through_proxy(tmp_path / "s", Route(port=1), b"CONNECT 10.0.0.7:443 HTTP/1.1\r\n\r\n"))
    assert said.startswith(b"HTTP/1.1 502 "), "nothing listens on port 1"
