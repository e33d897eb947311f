"""Checks the addresses of servers before anything is sent to them.

The resolver raises UnicodeError for a host that cannot be a DNS name, which no caller takes for a server that does not answer.
"""

from typing import Final
from urllib.parse import urlsplit

#: How the address of a server begins that gets a secret: without TLS only on the same machine, as with `kubectl proxy`.
ADDRESSES: Final = ("https://", "http://127.0.0.1:", "http://[::1]:", "http://localhost:")


def address_fault(address: str) -> str | None:
    """Return what is wrong with an address, in words that do not repeat it; None if a request can be sent to it."""
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
