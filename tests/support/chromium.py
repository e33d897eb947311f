"""A real Chromium, driven through its own protocol: pages, keys, sizes, pictures, and whatever it complains about."""

import asyncio
import base64
import json
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

import aiohttp

from pulumi_holdfast.ladder.json import Json, JsonValue
from tests.support.json_objects import obj

CHROMIUM: Final = shutil.which("chromium") or shutil.which("google-chrome")
#: Without a browser these tests are skipped; where this is `required`, they fail.
REQUIRED: Final = os.environ.get("HOLDFAST_CHROMIUM") == "required"
_SECONDS: Final = 180
_KEYS: Final = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowRight": 39, "ArrowDown": 40}


@dataclass(kw_only=True)
class Page:
    """One page. `complaints`: errors and refused loads; `requested`: the addresses that it loaded."""

    socket: aiohttp.ClientWebSocketResponse
    complaints: list[str] = field(default_factory=list[str])
    requested: list[str] = field(default_factory=list[str])
    _number: int = 0

    async def send(self, method: str, **parameters: JsonValue) -> Json:
        """Send a command and return its result."""
        self._number += 1
        await self.socket.send_json({"id": self._number, "method": method, "params": parameters})
        while True:
            message = cast("Json", json.loads((await self.socket.receive(_SECONDS)).data))
            if message.get("id") == self._number:
                assert "error" not in message, f"{method}: {message}"
                return obj(message["result"])
            self._take(message)

    async def open(self, address: str) -> None:
        """Open an address."""
        for domain in ("Page", "Runtime", "Network", "Log"):
            await self.send(f"{domain}.enable")
        await self.send("Page.navigate", url=address)

    async def evaluate(self, expression: str) -> JsonValue:
        """Return what an expression of JavaScript evaluates to."""
        found = await self.send(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        return obj(found["result"]).get("value")

    async def wait(self, expression: str, what: str) -> None:
        """Wait until an expression is true."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SECONDS
        while await self.evaluate(expression) is not True:
            assert loop.time() < deadline, f"{what}: {await self.evaluate('document.body.innerText')}"
            await asyncio.sleep(0.2)

    async def press(self, key: str) -> None:
        """Press and release a key."""
        text: dict[str, JsonValue] = {"text": "\r"} if key == "Enter" else {}
        given: dict[str, JsonValue] = {"key": key, "code": key, "windowsVirtualKeyCode": _KEYS[key]}
        await self.send("Input.dispatchKeyEvent", type="keyDown", **given, **text)
        await self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    async def resize(self, width: int, height: int) -> None:
        """Give the window a size; narrow ones are phones."""
        await self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    async def picture(self, file: Path) -> None:
        """Write a picture of the window."""
        found = await self.send("Page.captureScreenshot", format="png")
        file.write_bytes(base64.b64decode(str(found["data"])))

    def _take(self, message: Json) -> None:
        method, parameters = str(message.get("method")), obj(message.get("params"))
        if method == "Runtime.exceptionThrown":
            self.complaints.append(str(parameters["exceptionDetails"]))
        elif method == "Log.entryAdded" and obj(parameters["entry"]).get("level") in {"error", "warning"}:
            self.complaints.append(str(parameters["entry"]))
        elif method == "Network.requestWillBeSent":
            self.requested.append(str(obj(parameters["request"])["url"]))


@asynccontextmanager
async def chromium_page(folder: Path) -> AsyncGenerator[Page]:
    """A page of a browser of its own, for the length of the block."""
    assert CHROMIUM is not None, "Chromium is required, and not on PATH: `apt-get install chromium`"
    words = ("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-port=0", "--no-first-run")
    browser = subprocess.Popen(
        [CHROMIUM, *words, f"--user-data-dir={folder}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        async with aiohttp.ClientSession() as session:
            target = await _target(session, folder / "DevToolsActivePort")
            async with session.ws_connect(target, max_msg_size=0) as socket:
                yield Page(socket=socket)
    finally:
        browser.terminate()
        browser.wait(60)


async def _target(session: aiohttp.ClientSession, port_file: Path) -> str:
    """Return the address of the first page, once the browser has one."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _SECONDS
    while True:
        if port_file.is_file() and (port := port_file.read_text().partition("\n")[0]):
            async with session.get(f"http://127.0.0.1:{port}/json/list") as answer:
                pages = [
                    each for each in cast("list[Json]", await answer.json()) if each.get("type") == "page"
                ]
            if pages:
                return str(pages[0]["webSocketDebuggerUrl"])
        assert loop.time() < deadline, "the browser has a page"
        await asyncio.sleep(0.1)
