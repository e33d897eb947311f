import subprocess
import sys
from pathlib import Path

import pytest

from pulumi_holdfast.cli.__main__ import main

PNG = b"\x89PNG"


def test_the_source_report_says_where_the_table_is_wrong(capsys: pytest.CaptureFixture[str]):
    assert main(["economics", "source"]) == 0
    printed = capsys.readouterr().out
    assert "217%  " in printed
    assert "not what is added to it" in printed
    assert "2.76 to 3.30" in printed
    assert "34.0% to 44.8%" in printed


def test_the_cost_of_a_job_is_a_range(capsys: pytest.CaptureFixture[str]):
    asked = "cost --hours 5 --spot-share 0.6 --failures 5 --hours-per-failure 0.2"
    assert main(["economics", *asked.split()]) == 0
    assert "2.76 to 3.30 on-demand hours instead of 5" in capsys.readouterr().out


def test_a_ladder_is_judged_tier_by_tier(capsys: pytest.CaptureFixture[str]):
    assert main(["economics", "ladder", "a100-spot:0.32:0.3:0.2", "h100-spot:0.9:9:0.3", "a100:1"]) == 0
    rows = capsys.readouterr().out.splitlines()
    assert "worth it up to" in rows[1]
    assert "leave it out: a100 is cheaper" in rows[2]
    assert "the last tier" in rows[3]


def test_max_failures_comes_with_its_reason(capsys: pytest.CaptureFixture[str]):
    asked = "max-failures --hours 48 --spot-price 0.32 --evictions-per-hour 0.1 --hours-per-eviction 0.2"
    assert main(["economics", *asked.split()]) == 0
    printed = capsys.readouterr().out
    assert "maxFailures: 10" in printed
    assert "because" in printed
    assert "`maxFailures: 5` with `failureWindow: 19h`" in printed


@pytest.mark.parametrize(
    ("asked", "is_marked"),
    [
        ("cost --hours 5 --spot-share 0.6 --failures 5 --hours-per-failure 0.2", False),
        ("cost --hours 5 --spot-share 0.6 --failures 50 --hours-per-failure 0.2", True),
        ("ladder a:0.3:0.1:0.2 b:1", False),
        ("ladder a:0.1:9:0.3 b:1", True),
        ("max-failures --hours 48 --spot-price 0.8 --evictions-per-hour 0.1 --hours-per-eviction 0.2", False),
        ("max-failures --hours 48 --spot-price 0.3 --evictions-per-hour 0.1 --hours-per-eviction 0.2", True),
    ],
)
def test_figures_beyond_the_linear_model_are_marked(
    asked: str, is_marked: bool, capsys: pytest.CaptureFixture[str]
):
    assert main(["economics", *asked.split()]) == 0
    assert ("beyond the linear model" in capsys.readouterr().out) is is_marked


def test_checkpoints_are_advised_by_notice_and_size(capsys: pytest.CaptureFixture[str]):
    asked = "checkpoints --size-gib 100 --gib-per-second 2 --notice-seconds 25 --evictions-per-hour 0.1"
    assert main(["economics", *asked.split()]) == 0
    assert "longer than the notice" in capsys.readouterr().out


def test_curves_are_drawn_for_the_terminal_and_as_a_picture(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    picture = tmp_path / "curves.png"
    assert main(["economics", "curves", "--png", str(picture)]) == 0, "the worked example is the default"
    printed = capsys.readouterr().out
    assert printed.count("upper: added hours as the work") == 2
    assert picture.read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("asked", "named"),
    [
        (
            ["cost", "--hours", "0", "--spot-share", "1", "--failures", "1", "--hours-per-failure", "1"],
            "hours: got 0.0",
        ),
        (["curves", "--png", "/nowhere/at/all.png"], "/nowhere/at/all.png"),
    ],
)
def test_what_cannot_be_is_a_sentence_and_no_traceback(
    asked: list[str], named: str, capsys: pytest.CaptureFixture[str]
):
    assert main(["economics", *asked]) == 1
    message = capsys.readouterr().err
    assert message.startswith("error: ")
    assert named in message


@pytest.mark.parametrize("tier", ["a100", "a100:1:2", ":1", "a100:x", "a100:0", "a100:0.3:-1:1"])
def test_a_tier_that_cannot_be_read_is_refused_with_the_form_it_has(
    tier: str, capsys: pytest.CaptureFixture[str]
):
    with pytest.raises(SystemExit) as ended:
        main(["economics", "ladder", tier])
    assert ended.value.code == 2
    assert f'"{tier}"' in capsys.readouterr().err


def test_only_drawing_imports_the_libraries_that_draw():
    program = "import sys, pulumi_holdfast.analysis.economics.command; print([m for m in ('numpy', 'matplotlib') if m in sys.modules])"
    printed = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    ).stdout
    assert printed.strip() == "[]"
