"""The examples' reports of progress: what they send, how often, and that the training never fails for them."""

from pathlib import Path

import pytest

from tests.support.training_program import loaded


def test_reports_are_steps_of_all_steps_and_no_more_often_than_configured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = loaded(monkeypatch, "progress", {"SECONDS_BETWEEN_REPORTS": "3600"})
    sent: list[str] = []
    progress = module.Progress(100, sent.append)
    for step in range(5):
        progress.report(step)
    progress.report(100, at_once=True)
    assert sent == ["0/100", "100/100"], "the first, and those that cannot wait"


def test_training_goes_on_when_a_report_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = loaded(monkeypatch, "progress", {})
    tried: list[str] = []

    def refuse(value: str) -> None:
        tried.append(value)
        raise OSError("HTTP Error 403: Forbidden")

    progress = module.Progress(10, refuse)
    progress.report(1, at_once=True)
    progress.report(2, at_once=True)
    assert tried == ["1/10"]
    assert "403" in capsys.readouterr().out


def test_outside_of_a_cluster_nothing_is_sent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("POD_NAME", raising=False)
    module = loaded(monkeypatch, "progress", {"SERVICE_ACCOUNT_FOLDER": str(tmp_path)})
    module.progress_of(10).report(1, at_once=True)
    monkeypatch.setenv("POD_NAME", "train-0")
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "unreachable.invalid")
    module.progress_of(10).report(1, at_once=True)
    assert list(tmp_path.iterdir()) == [], "without a token there is no request that could fail"
