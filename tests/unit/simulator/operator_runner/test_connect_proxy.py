"""The API server's calls to a Service reach the process behind it, or are told why not."""

import pytest

from holdfast.simulator.operator_runner.connect_proxy import Backend, Head, parse_head, route
from tests.support.hosted_pods import backend, pod, service


@pytest.mark.parametrize("target", ["http", 8080], ids=["by name", "by number"])
def test_a_services_port_leads_to_the_process(target: int | str) -> None:
    found = route("10.0.0.7", 443, [service(target=target)], [backend(local_port=40_000)])
    assert found.port == 40_000, "443 → the container's port → this machine's"


def test_a_port_without_a_target_leads_to_the_same_number() -> None:
    found = route("10.0.0.7", 8080, [service(port=8080, target=None)], [backend(local_port=40_000)])
    assert found.port == 40_000, "the default target"


def test_a_pod_that_is_not_ready_is_passed_over() -> None:
    backends = [backend(ready=False, local_port=1), backend(ready=True, local_port=2)]
    assert route("10.0.0.7", 443, [service()], backends).port == 2, "as a kube-proxy does"


@pytest.mark.parametrize(
    ("host", "port", "behind", "reason"),
    [
        ("10.0.0.8", 443, backend(), "no Service has the address 10.0.0.8"),
        ("10.0.0.7", 80, backend(), "Service jobset-system/webhook has no port 80"),
        (
            "10.0.0.7",
            443,
            backend(ready=False),
            "of 1 hosted pods behind Service jobset-system/webhook none is ready",
        ),
        ("10.0.0.7", 443, backend(of=pod(namespace="other")), "of 0 hosted pods"),
        ("10.0.0.7", 443, backend(of=pod(labels={"app.kubernetes.io/name": "x"})), "of 0 hosted pods"),
    ],
)
def test_a_destination_nobody_serves_is_refused_with_the_reason(
    host: str, port: int, behind: Backend, reason: str
) -> None:
    found = route(host, port, [service()], [behind])
    assert found.port is None, "there is nowhere to connect to"
    assert reason in found.reason, "the host's log says it"


def test_a_service_without_a_selector_has_no_pods_of_its_own() -> None:
    found = route("10.0.0.7", 443, [service(selector={})], [backend()])
    assert found.port is None, "an empty selector selects nothing here"


def test_the_head_of_a_request_is_taken_apart() -> None:
    assert parse_head("CONNECT 10.0.0.7:443 HTTP/1.1\r\nHost: x\r\nContent-Length:  3\r\n\r\n") == Head(
        method="CONNECT", target="10.0.0.7:443", headers={"host": "x", "content-length": "3"}
    ), "header names are lower-case, values trimmed"


@pytest.mark.parametrize("text", ["", "GET /", "one two three four"])
def test_what_is_no_request_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not the first line of a request"):
        parse_head(text)
