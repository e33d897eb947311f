"""`kubectl holdfast ui`: reads the namespace with the user's rights, and serves the page until Ctrl-C."""

from __future__ import annotations

import argparse
import threading
import webbrowser
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.cli.kubectl.command_line import access_of, errors_for_the_user, open_cluster
from pulumi_holdfast.cli.kubectl.connection import find_target
from pulumi_holdfast.cli.kubectl.ui.board import Reading, board, views_of, with_spans
from pulumi_holdfast.cli.kubectl.ui.server import Feed, PageServer
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pulumi_holdfast.cli.kubectl.cluster import Cluster
    from pulumi_holdfast.cli.kubectl.ui.board import Span
    from pulumi_holdfast.ladder.json import Json


_LAST_PORT: Final = 65535


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--port", type=_port, default=0, help="the port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--no-browser", action="store_true", help="print the address and open no browser")


def _port(given: str) -> int:
    if not given.isdecimal() or int(given) > _LAST_PORT:
        raise argparse.ArgumentTypeError(f"{given} is not an integer from 0 to {_LAST_PORT}")
    return int(given)


def run(parsed: argparse.Namespace) -> int:
    """Serve the page until the process is interrupted."""
    access = access_of(parsed)
    context = find_target(access).context
    with open_cluster(access) as cluster:
        reader = BoardReader(cluster, context)
        # What the user may not read is said before a page is opened.
        reader.read()
        feed = Feed(reader.read)
        try:
            server = PageServer(feed, parsed.port)
        except OSError as error:
            raise ConfigError([_no_port(parsed.port, error)]) from error
        feed.start()
        serving = threading.Thread(target=server.serve_forever, name="serve the page", daemon=True)
        serving.start()
        print(f"{server.address}\nOnly this address opens the page. Ctrl-C ends it.", flush=True)
        if not parsed.no_browser:
            webbrowser.open(server.address)
        try:
            serving.join()
        finally:
            feed.close()
            server.shutdown()
            server.server_close()
    return 0


class BoardReader:
    """Reads the namespace and remembers the timelines since it was started."""

    def __init__(self, cluster: Cluster, context: str) -> None:
        self._cluster = cluster
        self._context = context
        self._spans: Mapping[str, tuple[Span, ...]] = {}

    def read(self) -> Json:
        """Return the board as of now."""
        with errors_for_the_user():
            reading = Reading(
                namespace=self._cluster.namespace,
                context=self._context,
                policy=self._cluster.policy(),
                jobs=self._cluster.jobs(),
                events=self._cluster.events(),
                now=datetime.now(UTC).replace(microsecond=0),
            )
        self._spans = with_spans(self._spans, views_of(reading), reading.now)
        return board(reading, self._spans)


def _no_port(port: int, error: OSError) -> Problem:
    return Problem(
        field="--port",
        value=f"{port} ({error.strerror or error})",
        allowed="a port of 127.0.0.1 that no other program uses",
        fix="Choose another port, or leave --port out.",
    )
