"""Reads the head of an HTTP/1.1 request from a stream."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

HEAD_SECONDS = 10.0


@dataclass(frozen=True, kw_only=True)
class Head:
    """The first line of a request and its headers, by lower-case name."""

    method: str
    target: str
    headers: Mapping[str, str]


async def read_head(reader: asyncio.StreamReader) -> Head:
    """Read up to the empty line. Raises ValueError, EOFError or TimeoutError where no whole head comes."""
    async with asyncio.timeout(HEAD_SECONDS):
        try:
            raw = await reader.readuntil(b"\r\n\r\n")
        except asyncio.LimitOverrunError as error:
            raise ValueError("the head of a request is longer than 64 KiB") from error
    return parse_head(raw.decode("latin-1"))


def parse_head(text: str) -> Head:
    """Take the text of a head apart. Raises ValueError where it is none."""
    first, *lines = text.split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3:
        raise ValueError(f"not the first line of a request: {first!r}")
    pairs = [line.partition(":") for line in lines if line]
    return Head(
        method=parts[0],
        target=parts[1],
        headers={name.strip().lower(): value.strip() for name, _, value in pairs},
    )
