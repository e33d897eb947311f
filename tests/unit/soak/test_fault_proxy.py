"""A proxy of an API server is there before its block begins, or says why it cannot be."""

from pathlib import Path

import pytest

from holdfast.fallback.api.access import ApiAccess
from tests.soak.fault_proxy import FaultProxy


def test_a_front_that_cannot_begin_says_why(tmp_path: Path) -> None:
    proxy = FaultProxy(
        kubeconfig=tmp_path / "not made" / "kubeconfig", access=ApiAccess(server="https://api.example:6443")
    )
    with pytest.raises(FileNotFoundError, match="not made"), proxy.serving():
        pytest.fail("nobody serves in this block")
