"""Validates the addresses of servers before a request is sent.

For a host that cannot be a DNS name the resolver raises UnicodeError, which callers do not handle as an unreachable
server.
"""

from typing import Final
from urllib.parse import urlsplit

#: How the address of a server begins that gets a secret: without TLS only on the same machine, as with `kubectl proxy`.
ADDRESSES: Final = ("https://", "http://127.0.0.1:", "http://[::1]:", "http://localhost:")


def address_fault(address: str) -> str | None:
    """Return the problem of an address, without the address itself; None if it is valid."""
    if not address.isprintable() or " " in address:
        return "an address with a space or a control character"
    try:
        parts = urlsplit(address)
        host, port = parts.hostname, parts.port
    except ValueError:
        return "an address whose host or port cannot be read"
    if not host or port == 0:
        return "an address without a host" if not host else "an address with the port 0"
    try:
        # Twice: other characters may stand for a dot.
        host.encode("idna").decode("ascii").encode("idna")
    except UnicodeError:
        return "an address whose host has an empty part, or one of more than 63 characters"
    return None
