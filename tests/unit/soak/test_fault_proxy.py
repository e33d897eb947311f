"""The fault proxy."""

from pathlib import Path

import pytest

from holdfast.fallback.api.access import ApiAccess
from tests.soak.fault_proxy import FaultProxy


def test_a_proxy_that_cannot_start_raises_the_reason(tmp_path: Path) -> None:
    proxy = FaultProxy(
        kubeconfig=tmp_path / "not made" / "kubeconfig", access=ApiAccess(server="https://api.example:6443")
    )
    with pytest.raises(FileNotFoundError, match="not made"), proxy.serving():
        pytest.fail("the block must not run")
