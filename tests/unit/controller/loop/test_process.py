"""The process: settings, log lines, and its HTTP server."""

import json
import logging
from pathlib import Path

import pytest

from pulumi_holdfast.controller.loop.controller import JsonFormatter, other_connections
from pulumi_holdfast.controller.loop.metrics import MetricName, Metrics
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from tests.support.coroutines import in_event_loop


def test_settings_of_a_pod_and_its_identity_need_no_option(tmp_path: Path) -> None:
    (tmp_path / "namespace").write_text("elsewhere\n")
    settings = parse_settings([], {}, account=tmp_path)
    assert settings.kubeconfig is None
    assert settings.namespace == "elsewhere"
    assert settings.port == 8080
    assert parse_settings([], {}).identity != parse_settings([], {}).identity


def test_a_kubeconfig_comes_from_the_command_line_before_the_environment(tmp_path: Path) -> None:
    variables = {"KUBECONFIG": str(tmp_path / "a")}
    assert parse_settings([], variables).kubeconfig == tmp_path / "a"
    given = parse_settings(["--kubeconfig", str(tmp_path / "b")], variables)
    assert given.kubeconfig == tmp_path / "b"
    others = parse_settings(["--cluster", "west=/etc/west", "--cluster", "east=/etc/east"], {}).clusters
    assert others == {"west": Path("/etc/west"), "east": Path("/etc/east")}
    with pytest.raises(ConfigError, match="readable kubeconfig"):
        given.access()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "70000"],
        ["--port", "x"],
        ["--workers", "0"],
        ["--log-level", "loud"],
        ["--karpenter-metrics", "http://karpenter..svc:8080/metrics"],
        ["--cluster", "us/west=/etc/west"],
        ["--cluster", "us-west-2"],
        ["x"],
    ],
)
def test_invalid_options_are_rejected_with_the_allowed_values(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        parse_settings(arguments, {})
    assert arguments[-1] in capsys.readouterr().err


async def _reached(*arguments: str) -> set[str]:
    found = other_connections(parse_settings(arguments, {}))
    for each in found.values():
        await each.close()
    return set(found)


@in_event_loop
async def test_another_cluster_with_an_invalid_kubeconfig_is_left_out(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    user: Json = {"name": "home", "user": {"token": "a"}}
    cluster: Json = {"name": "there", "cluster": {"server": "https://127.0.0.1:1"}}
    context: Json = {"name": "there", "context": {"cluster": "there", "user": "home"}}
    valid: Json = {"users": [user], "clusters": [cluster], "contexts": [context], "current-context": "there"}
    (tmp_path / "east").write_text(json.dumps(valid))
    (tmp_path / "west").write_text("clusters: 7")
    options = [f"--cluster={name}={tmp_path / name}" for name in ("east", "west", "gone")]
    assert await _reached(*options) == {"east"}
    assert [each.args for each in caplog.records] == [("west",), ("gone",)]


def test_a_log_line_is_one_object_with_its_fields_and_exception() -> None:
    record = logging.makeLogRecord(
        {"name": "fallback", "levelno": 30, "levelname": "WARNING", "msg": "said %s\n", "args": ("so",)}
    )
    record.job = "JobSet/vision/train"
    line = JsonFormatter().format(record)
    assert "\n" not in line
    found = json.loads(line)
    assert (found["message"], found["level"], found["job"]) == ("said so\n", "warning", "JobSet/vision/train")
    try:
        raise KeyError("lost")
    except KeyError as error:
        record = logging.makeLogRecord({"msg": "x", "exc_info": (KeyError, error, error.__traceback__)})
    assert "KeyError" in json.loads(JsonFormatter().format(record))["exception"]


def test_gauges_are_read_at_each_scrape() -> None:
    metrics, value = Metrics(process=False), [1.0]
    metrics.gauge_on_scrape(
        MetricName.CACHED_OBJECTS, "Objects cached.", ("kind",), lambda: [(("a",), value[0])]
    )
    value[0] = 5
    assert b'holdfast_fallback_cached_objects{kind="a"} 5.0' in metrics.text()
