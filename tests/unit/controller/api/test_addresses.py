"""Addresses that no request can be sent to are distinguished from those whose server may answer."""

import socket
from typing import Final

import pytest
from hypothesis import given
from hypothesis import strategies as st
from yarl import URL

from pulumi_holdfast.controller.api.addresses import address_fault

USABLE: Final = (
    "https://hooks.slack.com/services/T0/B0/x",
    "https://user:word@hooks.example.com:8443/x?y=z",
    "https://[fd00::1]:6443",
    "http://127.0.0.1:8001",
    "https://example.com./x",
    "https://bücher.example/x",
)
UNUSABLE: Final = (
    "https://hooks..slack.com/x",
    f"https://{'a' * 64}.com/x",
    "https://.com/",
    "https://\u2024.com",
    "https://",
    "https:///x",
    "https://hooks.slack.com:abc/x",
    "https://hooks.slack.com:99999/x",
    "https://hooks.slack.com:0/x",
    "https://[::1",
    "https://hooks.slack.com/a b",
    "https://hooks.slack.com/\x00",
    "https://hooks.slack\n.com/",
)


@pytest.mark.parametrize("address", USABLE)
def test_an_address_with_a_host_is_usable(address: str) -> None:
    assert address_fault(address) is None, "only its server can say more"


@pytest.mark.parametrize("address", UNUSABLE)
def test_an_address_without_a_host_that_can_be_looked_up_is_named_without_repeating_it(address: str) -> None:
    fault = address_fault(address)
    assert fault is not None, "no request can be sent to it"
    assert address.removeprefix("https://") not in fault or address == "https://", "it may be a secret"


@given(host=st.text("aZ0-._\u2024ü。", min_size=1, max_size=80))
def test_the_resolver_takes_the_host_of_every_usable_address(host: str) -> None:
    address = f"https://{host}/x"
    if address_fault(address) is not None:
        return
    error = None
    try:
        # No question to a name server: the host is encoded, and is then no number.
        socket.getaddrinfo(URL(address).raw_host, 443, flags=socket.AI_NUMERICHOST)
    except UnicodeError as raised:
        error = raised
    except (OSError, ValueError):
        pass
    assert error is None, f"{host!r} ends whatever sends a request to it"
