"""The examples of single parts: short programs, each on the page that introduces it; the economics need no SDK."""

import subprocess
import sys
from typing import Final

import yaml

from tests.support.doc_pages import ROOT, DocPage

PAGE: Final = DocPage.read("docs/parts.md")
PARTS: Final = ROOT / "examples/parts"
OWN_PRICES: Final = "examples/parts/economics/own_prices.py"
#: What a script imports beside the standard library and Holdfast.
IMPORTED: Final = """
import runpy, sys
runpy.run_path(sys.argv[1], run_name="__main__")
known = {*sys.stdlib_module_names, "holdfast"}
print(*sorted({name.partition(".")[0] for name in sys.modules} - known), file=sys.stderr)
"""


def test_each_part_is_on_the_page_and_in_a_short_program() -> None:
    for part in sorted(PARTS.iterdir()):
        assert f"`examples/parts/{part.name}`" in PAGE.text
        for program in part.glob("*.py"):
            lines = program.read_text("utf-8").splitlines()
            assert len(lines) < 60, f"{program}: a reader sees it at once"


def test_the_ladder_on_the_page_is_the_one_of_the_example() -> None:
    *_, written = yaml.safe_load_all((PARTS / "controller/ladder.yaml").read_text("utf-8"))
    shown = next(text for text in PAGE.text.split("```")[1::2] if "kind: FallbackPolicy" in text)
    assert yaml.safe_load(shown.removeprefix("yaml")) == written


def test_the_economics_run_on_an_own_table_and_import_no_sdk() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", IMPORTED, OWN_PRICES], cwd=ROOT, capture_output=True, text=True, check=True
    )
    shown = PAGE.text.partition(f"python {OWN_PRICES}\n")[2].partition("```")[0]
    assert ended.stdout == shown
    sdks = {"pulumi", "pulumi_aws", "pulumi_kubernetes", "aiohttp", "kubernetes", "pydantic"}
    assert not sdks & {*ended.stderr.split()}
