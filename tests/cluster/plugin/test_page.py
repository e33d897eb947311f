"""The page of `kubectl holdfast ui` in a real Chromium, beside a job that moves."""

import asyncio
from collections.abc import Generator
from pathlib import Path

import pytest

from tests.support.chromium import CHROMIUM, REQUIRED, chromium_page
from tests.support.clusters.plugin import PluginCluster
from tests.support.clusters.reconciler import jobset, policy

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.skipif(
        CHROMIUM is None and not REQUIRED, reason="Chromium is not on PATH: `apt-get install chromium`"
    ),
]

LANE = 'document.querySelector(`[data-pool="{pool}"] [data-job]`) !== null'


@pytest.fixture
def address(cluster: PluginCluster) -> Generator[str]:
    """The page's address, while `kubectl holdfast ui` runs as the user beside two jobs."""
    cluster.loop.apply(
        policy(
            {"pool": "spot-a", "maxFailures": 3}, {"pool": "spot-b", "maxFailures": 3}, {"pool": "on-demand"}
        )
    )
    cluster.loop.apply(jobset("moves"), jobset("tune", pool="on-demand"))
    cluster.loop.wait_on("moves", "spot-a")
    process = cluster.start("holdfast", "ui", "--no-browser")
    assert process.stdout is not None
    found = process.stdout.readline().strip()
    assert found.startswith("http://127.0.0.1:"), f"{found}{process.stderr.read() if process.stderr else ''}"
    yield found
    process.terminate()
    out, err = process.communicate(timeout=60)
    assert "Traceback" not in err, f"{out}{err}"
    cluster.loop.clear()


def test_page_shows_a_move_live_and_is_used_by_keyboard_and_on_a_phone(
    cluster: PluginCluster, address: str, tmp_path: Path
) -> None:
    asyncio.run(visit(cluster, address, tmp_path))


async def visit(cluster: PluginCluster, address: str, folder: Path) -> None:
    async with chromium_page(folder / "profile") as page:
        await page.resize(1280, 900)
        await page.open(address)
        await page.wait(LANE.format(pool="spot-a"), "the job is on its lane")
        assert await page.evaluate("location.hash + location.search") == ""
        await page.picture(folder / "board.png")

        await page.evaluate("document.querySelector('[data-job]').focus()")
        await page.press("ArrowDown")
        assert await page.evaluate("document.activeElement.innerText.includes('jobset/tune')")
        await page.press("Enter")
        await page.wait("!document.getElementById('detail').hidden", "Enter opens it")
        await page.press("Escape")
        await page.wait("document.getElementById('detail').hidden", "Escape closes it")
        assert await page.evaluate("document.activeElement.innerText.includes('jobset/tune')")

        moved = await asyncio.to_thread(
            cluster.kubectl, "holdfast", "move", "moves", "spot-b", "--timeout", "3m"
        )
        assert moved.returncode == 0
        await page.wait(LANE.format(pool="spot-b"), "the job slides to its new lane without a reload")
        await page.evaluate("document.querySelector('[data-pool=\"spot-b\"] [data-job]').click()")
        await page.wait(
            "document.querySelectorAll('#timeline rect').length >= 3", "its timeline has both pools"
        )
        await page.wait(
            "document.getElementById('history').innerText.includes('Stopped')", "its history is shown"
        )
        await page.picture(folder / "detail.png")

        await page.resize(390, 844)
        await page.wait("document.documentElement.scrollWidth <= 390", "nothing is wider than a phone")
        await page.picture(folder / "phone.png")
        await page.press("Escape")
        await page.wait("document.getElementById('detail').hidden", "closed")
        await page.picture(folder / "phone-board.png")
        small = "[...document.querySelectorAll('button')].filter((each) => each.offsetParent && each.offsetHeight < 44).length"
        assert await page.evaluate(small) == 0

        own = address.partition("#")[0]
        assert page.complaints == []
        foreign = [each for each in page.requested if not each.startswith((own, "data:"))]
        assert foreign == []
        assert not any(address.partition("#")[2] in each for each in page.requested)
