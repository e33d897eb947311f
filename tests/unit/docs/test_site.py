"""The documentation site: every page has a place, and messages are quoted as the program writes them."""

import ast
import asyncio
import re
import subprocess
import sys
from functools import cache, partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.support.background import served
from tests.support.chromium import CHROMIUM, chromium_page

ROOT = Path(__file__).resolve().parents[3]
DOCS = ROOT / "docs"
SOURCES = ("components", "infra", "policies", "Makefile")


def test_every_page_is_in_the_navigation_once() -> None:
    site = cast("dict[str, object]", yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8")))
    listed = pages(site["nav"])
    assert sorted(listed) == sorted([*(file.name for file in DOCS.glob("*.md")), "adr/README.md"])


def test_the_tests_that_the_page_on_tenants_names_exist() -> None:
    named = set(re.findall(r"`(test_\w+)`", (DOCS / "tenants.md").read_text(encoding="utf-8")))
    files = [
        file for part in ("cluster", "unit/kubernetes") for file in (ROOT / "tests" / part).rglob("test_*.py")
    ]
    assert named
    assert named <= {
        name for file in files for name in re.findall(r"^def (test_\w+)", file.read_text(), re.MULTILINE)
    }


def test_the_troubleshooting_page_quotes_messages_exactly() -> None:
    written = " ".join(source_text(ROOT / source) for source in SOURCES)
    assert quoted()
    for message in quoted():
        assert message in written, f"no program writes {message!r}"


#: What a message says to do.
FIX = re.compile(
    r"[;:,.] (?:or |then |and )?(?:add|check|choose|find|fix|give|install|name|read|restore|run|set|start|use|write)\w* ",
    re.IGNORECASE,
)


def test_a_message_of_a_rehearsal_says_what_to_do_or_the_troubleshooting_page_does() -> None:
    folders = (
        "components/pulumi_holdfast/rehearsal/lifecycle",
        "components/pulumi_holdfast/rehearsal/stacks",
        "components/pulumi_holdfast/rehearsal/control_plane",
        "components/pulumi_holdfast/rehearsal/operator_runner",
    )
    files = [file for folder in folders for file in (ROOT / folder).rglob("*.py")]
    messages = [each for file in files for each in raised(ast.parse(file.read_text("utf-8")))]
    assert len(messages) > 20
    silent = [each for each in messages if not FIX.search(each) and not any(row in each for row in quoted())]
    assert silent == []


def raised(module: ast.Module) -> list[str]:
    """The messages of a module's errors, without the values in them; those from elsewhere are judged there."""
    calls = [
        node.exc
        for node in ast.walk(module)
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call)
    ]
    errors = [each for each in calls if isinstance(each.func, ast.Name) and each.func.id == "RehearsalError"]
    return [text for each in errors if each.args and (text := constant_text(each.args[0]))]


def constant_text(node: ast.expr) -> str:
    if isinstance(node, ast.JoinedStr):
        return "".join(constant_text(each) for each in node.values)
    if isinstance(node, ast.BinOp):
        return constant_text(node.left) + constant_text(node.right)
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


@cache
def quoted() -> list[str]:
    """The messages in the first column of the page's tables."""
    rows = re.findall(r"^\| (`[^|]+`) \|", (DOCS / "troubleshooting.md").read_text("utf-8"), re.MULTILINE)
    return [message for row in rows for message in re.findall(r"`([^`]+)`", row)]


def test_the_readme_takes_a_minute() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert len(prose.split()) < 500
    compared = re.findall(r"^\| ([A-Z]\w.*?) \|", text.partition("## Compared with")[2], re.MULTILINE)
    assert compared == ["SkyPilot", "Karpenter alone", "Kueue", "Determined", "GKE ComputeClasses"]
    assert re.findall(r"^\*\*\[?(\w+ \w+)", text.partition("## Three ways to start")[2], re.MULTILINE) == [
        "Try it",
        "On your",
        "One part",
    ]


def pages(nav: object) -> list[str]:
    if isinstance(nav, str):
        return [nav]
    if isinstance(nav, dict):
        return pages(list(cast("dict[str, object]", nav).values()))
    return [page for each in cast("list[object]", nav) for page in pages(each)]


def source_text(path: Path) -> str:
    """The sources with adjacent string literals joined."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    text = " ".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


@pytest.mark.soak
@pytest.mark.timeout(600)
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not on PATH: `apt-get install chromium`")
def test_each_page_fits_a_desk_and_a_phone_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    site = tmp_path / "site"
    build = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(site)]
    subprocess.run(build, cwd=ROOT, check=True)
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with served(handler) as address:
        names = [page.name for page in sorted(site.glob("*.html"))]
        asyncio.run(visit(names, f"{address}/", tmp_path / "profile"))


async def visit(names: list[str], site: str, profile: Path) -> None:
    async with chromium_page(profile) as page:
        for name in names:
            await page.open(site + name)
            await page.wait(
                f"document.readyState === 'complete' && location.pathname === '/{name}'", "the page is there"
            )
            for width in (1280, 390):
                await page.resize(width, 900)
                fits = f"innerWidth === {width} && document.documentElement.scrollWidth <= innerWidth"
                await page.wait(fits, f"{name} scrolls sideways at {width} pixels")
            missing = "[...document.images].filter(each => each.complete && !each.naturalWidth).length"
            assert await page.evaluate(missing) == 0, f"a picture of {name} is not there"
        assert page.complaints == []
        assert [each for each in page.requested if not each.startswith((site, "data:"))] == []
