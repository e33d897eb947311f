"""The command: what it takes, what it prints, and sentences for all that cannot be."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.analysis.replay.trace import read_trace
from pulumi_holdfast.cli.__main__ import main


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A trace of 20 days."""
    path = tmp_path / "a.json"
    assert (
        main(["replay", "synthetic", str(path), "--seed", "4", "--length", "480h", "--instances", "2"]) == 0
    )
    return path


def run(*arguments: str) -> int:
    return main(["replay", "run", *arguments])


def test_a_made_trace_can_be_replayed(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = f"a:0.32:{made} b:1 --work 24h --restart 12m --return-after never 4h --starts 3 --within 30h"
    assert run(*asked.split()) == 0
    printed = capsys.readouterr().out
    assert "24 h of training on 1 instance; 3 starts in 20 days" in printed
    assert "5 failures, 15m, back after 4h" in printed


def test_a_comparison_can_be_had_as_json(made: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert run(f"a:0.32:{made}", "b:1", "--work", "24h", "--starts", "2", "--nodes", "2", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert document["job"]["nodes"] == 2
    assert len(document["rows"][0]["replays"]) == 2


def test_a_policy_can_be_replayed(made: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    policy = tmp_path / "ladder.json"
    policy.write_text('{"spec": {"tiers": [{"pool": "a", "maxFailures": 1}, {"pool": "b"}]}}')
    assert run(f"a:0.32:{made}", "b:1", "--work", "24h", "--policy", str(policy), "--starts", "1") == 0
    assert "\nladder.json " in capsys.readouterr().out


def test_a_policy_with_a_reserved_tier_needs_its_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    window = {"begins": "2026-12-01T00:00:00Z", "ends": "2026-12-02T00:00:00Z"}
    policy = tmp_path / "ladder.json"
    policy.write_text(
        json.dumps(
            {
                "spec": {
                    "tiers": [
                        {"pool": "r", "maxFailures": 1, "facts": {"capacity": "reserved", "window": window}},
                        {"pool": "b"},
                    ]
                }
            }
        )
    )
    asked = ["b:1", "--work", "24h", "--policy", str(policy)]
    assert run("r:0.7", *asked) == 1
    assert "r:PRICE:BEGIN..END" in capsys.readouterr().err
    assert run("r:0.7:6h..30h", *asked) == 0


def test_a_limit_of_price_is_in_the_currency_of_the_recorded_prices(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, policy = tmp_path / "a.json", tmp_path / "ladder.json"
    path.write_text(
        json.dumps({"metadata": {"gap_seconds": 3600}, "data": [1] * 90, "prices": [2] * 45 + [1] * 45})
    )
    tiers = [{"pool": "a", "maxFailures": 5, "maxPrice": 1.5}, {"pool": "b"}]
    policy.write_text(json.dumps({"spec": {"returnAfter": "1h", "tiers": tiers}}))
    asked = [f"a:0.9:{path}", "b:1", "--work", "30h", "--starts", "2", "--boot", "1m", "--json"]
    price = ["--on-demand-price", "4"]
    for limit in (["--max-price", "1.5"], ["--policy", str(policy)]):
        assert run(*asked, *price, *limit) == 0
        _, stays, limited = json.loads(capsys.readouterr().out)["rows"]
        assert [each["cost"] for each in stays["replays"]] == pytest.approx([0.5, 0.25])
        assert limited["replays"][0]["moves"] == 1
        assert limited["replays"][1]["moves"] == 0
        assert run(*asked, *limit) == 1
        assert "set --on-demand-price" in capsys.readouterr().err


def test_rates_are_printed_for_the_advice_on_max_failures(
    made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", "rates", str(made), str(made), "--nodes", "2"]) == 0
    printed = capsys.readouterr().out
    assert "For 2 instances at once" in printed
    assert printed.count("a.json") == 2


def test_the_same_seed_makes_the_same_file(made: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.json"
    main(["replay", "synthetic", str(again), "--seed", "4", "--length", "480h", "--instances", "2"])
    assert again.read_text() == made.read_text()
    assert len(read_trace(made).data) == 480 * 12


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("run a:0.32:/nowhere/a.json b:1 --work 24h", "/nowhere/a.json"),
        ("run a:0.32:/ b:1 --work 24h", "'/'"),
        ("run a:0.32:{trace} a:1 --work 24h", "a a second time"),
        ("run a:0:{trace} b:1 --work 24h", "price of a: got 0"),
        ("run a:nan:{trace} b:1 --work 24h", "price of a: got nan"),
        ("run a:0.32:{trace} b:1 --work 500h", "the traces: 480 h"),
        ("run a:0.32:{trace} r:0.7:500h..510h b:1 --work 24h", "block of r: begins after"),
        ("run a:0.32:{trace} b:1 --work 24h --within 1h", "within: 1 h"),
        ("run a:0.32:{trace} b:1 --work 24h --nodes 0", "nodes: got 0"),
        ("run a:0.32:{trace} b:1 --work 24h --starts 0", "starts: got 0"),
        ("run a:0.32:{trace} b:1 --work 24h --max-failures -1 --procurement-timeout never", "never left"),
        ("run a:0.32:{trace} b:1 --work 24h --policy /nowhere/p.yaml", "/nowhere/p.yaml"),
        (
            "run a:0.32:{trace} b:1 --work 24h --policy p.yaml --max-failures 3 --return-after 4h",
            "leave out --max-failures, --return-after",
        ),
        ("rates {trace} --nodes 0", "nodes: got 0"),
        ("synthetic /nowhere/a.json", "/nowhere/a.json"),
        ("synthetic {trace} --instances 0", "instances: got 0"),
    ],
)
def test_what_cannot_be_is_a_sentence_and_no_traceback(
    asked: str, message: str, made: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["replay", *asked.format(trace=made).split()]) == 1
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert message in printed.err
    assert printed.out == ""


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("run a --work 24h", '"a": allowed: POOL:PRICE[:TRACE|:BEGIN..END]'),
        ("run :1 --work 24h", '":1": allowed'),
        ("run a:cheap --work 24h", '"a:cheap": allowed'),
        ("run a:0.7:9h..3h b:1 --work 24h", "a100-block:0.7:6h..54h"),
        ("run a:1 --work 24", '"24" is not a duration'),
        ("run a:1 --work 0", '"0" is not a duration'),
        ("run a:1 --work 24h --checkpoint-every never", '"never" is not a duration'),
        ("run a:1 --work 24h --return-after sometimes", "Or never."),
        ("run a:1 --work 24h --max-price inf", '"inf": allowed: a number above 0'),
        ("run a:1 --work 24h --max-failures some", '"some": allowed: a whole number from 0'),
        ("run a:1 --work 24h --max-failures -2", '"-2": allowed: a whole number from 0'),
        ("run a:1 --work 24h --max-failures 99999999999", '"99999999999": allowed'),
    ],
)
def test_an_argument_that_cannot_be_read_is_refused_with_the_form_it_has(
    asked: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay", *asked.split()])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
