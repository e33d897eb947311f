"""The page's server: only this user, only this host name, only reading."""

import http.client
import json
from collections.abc import Generator, Mapping

import pytest

from pulumi_holdfast.cli.kubectl.__main__ import main
from pulumi_holdfast.cli.kubectl.ui.server import ADDRESS, Feed, PageServer, hosts_of
from pulumi_holdfast.ladder.json import Json
from tests.support.background import serving


class Source:
    """A cluster whose board counts how often it was read."""

    def __init__(self) -> None:
        self.reads = 0

    def read(self) -> Json:
        self.reads += 1
        if self.reads == 2:
            raise ValueError("the API server does not answer")
        return {"reads": min(self.reads, 3)}


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def server(source: Source) -> Generator[PageServer]:
    feed = Feed(source.read)
    found = PageServer(feed)
    feed.start()
    with serving(found):
        yield found
        feed.close()


def ask(
    server: PageServer, path: str, headers: Mapping[str, str] | None = None, method: str = "GET"
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(ADDRESS, server.server_port, timeout=60)
    connection.putrequest(method, path, skip_host=True)
    given = {"Host": f"{ADDRESS}:{server.server_port}", **(headers or {})}
    for name, value in given.items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


@pytest.mark.parametrize("port", ["70000", "-1", "http"])
def test_port_that_there_is_not_is_refused_before_anything_is_read(
    port: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["ui", f"--port={port}"])
    assert "is not an integer from 0 to 65535" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("port", "names"), [(80, ["127.0.0.1", "127.0.0.1:80", "localhost"]), (8080, ["127.0.0.1:8080"])]
)
def test_hosts_are_those_that_a_browser_sends(port: int, names: list[str]) -> None:
    assert hosts_of(port).issuperset(names)
    assert ("127.0.0.1" in hosts_of(port)) == (port == 80)


def bearer(server: PageServer) -> Mapping[str, str]:
    return {"Authorization": f"Bearer {server.token}"}


@pytest.mark.parametrize("path", ["/", "/page.css", "/page.js"])
def test_page_is_served_with_headers_that_allow_nothing_from_elsewhere(server: PageServer, path: str) -> None:
    answer = ask(server, path)
    text = answer.read().decode()
    assert answer.status == 200
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Cache-Control"] == "no-store"
    assert "https://" not in text.replace("http://www.w3.org", "")


def test_boards_need_the_token_of_the_printed_address(server: PageServer) -> None:
    assert server.address.endswith(f"/#{server.token}")
    for headers in ({}, {"Authorization": "Bearer "}, {"Authorization": f"Bearer {server.token[:-1]}"}):
        assert ask(server, "/boards", headers).status == 401


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost:1", ""])
def test_another_name_for_this_address_is_refused(server: PageServer, host: str) -> None:
    assert ask(server, "/boards", {"Host": host, **bearer(server)}).status == 421
    assert ask(server, "/", {"Host": host}).status == 421


def test_page_of_another_origin_is_refused(server: PageServer) -> None:
    assert ask(server, "/boards", {"Origin": "https://evil.example", **bearer(server)}).status == 403
    own = {"Origin": f"http://localhost:{server.server_port}", **bearer(server)}
    assert ask(server, "/boards", own).status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_nothing_can_be_changed(server: PageServer, method: str) -> None:
    assert ask(server, "/boards", bearer(server), method).status == 501


@pytest.mark.parametrize("path", ["/page.py", "/../server.py", "/%2e%2e/server.py", "/boards/"])
def test_no_other_file_is_served(server: PageServer, path: str) -> None:
    assert ask(server, path, bearer(server)).status == 404


def test_cluster_is_read_only_while_a_page_is_open_and_a_failed_reading_is_shown(
    server: PageServer, source: Source
) -> None:
    assert source.reads == 0
    answer = ask(server, "/boards", bearer(server))
    lines: list[Json] = []
    while len(lines) < 3:
        line = answer.readline()
        if line.strip():
            lines.append(json.loads(line))
    assert lines == [{"reads": 1}, {"error": "the API server does not answer"}, {"reads": 3}]
    answer.close()


def test_server_listens_on_the_loopback_interface_only(server: PageServer) -> None:
    assert server.server_address[0] == "127.0.0.1"
