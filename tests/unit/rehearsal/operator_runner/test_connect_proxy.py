"""Calls of the API server to a Service reach its process, or fail with a reason."""

import pytest

from pulumi_holdfast.rehearsal.operator_runner.connect_proxy import Backend, route
from tests.support.builders.operator_pods import backend, pod, service


@pytest.mark.parametrize(
    ("host", "port", "behind", "reason"),
    [
        ("10.0.0.8", 443, backend(), "no Service has the address 10.0.0.8"),
        ("10.0.0.7", 80, backend(), "Service jobset-system/webhook has no port 80"),
        ("10.0.0.7", 443, backend(ready=False), "none of 1 pods of Service jobset-system/webhook is ready"),
        ("10.0.0.7", 443, backend(of=pod(namespace="other")), "none of 0 pods"),
        ("10.0.0.7", 443, backend(of=pod(labels={"app.kubernetes.io/name": "x"})), "none of 0 pods"),
    ],
)
def test_unserved_destination_has_a_reason(host: str, port: int, behind: Backend, reason: str) -> None:
    found = route(host, port, [service()], [behind])
    assert found.port is None
    assert reason in found.reason
