"""The demo: which scenarios it runs on which platform, what it prints of them, and that it fails with an unexpected result."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Final, cast

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.scenarios import demo as module
from pulumi_holdfast.rehearsal.scenarios.deadline import DEADLINE_SECONDS, DeadlineRun
from pulumi_holdfast.rehearsal.scenarios.demo import demo
from pulumi_holdfast.rehearsal.scenarios.platform import Platform
from tests.support.builders.scenario_results import START, default_placement, move, rayjob, restart, walk
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.json_objects import obj

DEADLINE: Final = DeadlineRun(
    jobset="train",
    pools=("b-spot", "a"),
    began_at=START,
    finish_by=START + timedelta(seconds=DEADLINE_SECONDS),
    ended_at=START + timedelta(seconds=DEADLINE_SECONDS - 60),
    moves=(move("b-spot", "a", 40),),
    overlaps=(),
    table="JOB\njobset/train",
)
#: What each scenario returns, by the name of its function.
RESULTS: Final = {
    "restart_on_spot": restart(),
    "default_placement": default_placement(),
    "rayjob_placement": rayjob(),
    "walk_the_ladder": walk(),
    "keep_the_deadline": DEADLINE,
}


class Stage:
    """A platform that is up, whose scenarios end at once with known results."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.workspace = Workspace(project_root=CHECKOUT)
        self.results: dict[str, object] = dict(RESULTS)
        self.ran: list[tuple[str, str, str]] = []
        self.lines: list[str] = []
        self.is_up = True
        client = cast("KubeClient", object())  # no scenario sends a request
        platform = Platform(client=client, namespace="tabular", say=lambda _: None)
        monkeypatch.setattr(module, "ControlPlane", self._itself)
        monkeypatch.setattr(module, "OperatorRunner", self._itself)
        monkeypatch.setattr(module.KubeClient, "from_kubeconfig", partial(_returning, client))
        monkeypatch.setattr(module, "training_platform", partial(_saying, platform))
        monkeypatch.setattr(module, "where_gpus_are", partial(replace, namespace="vision"))
        for name in RESULTS:
            monkeypatch.setattr(module, name, self._scenario(name))

    def healthy(self) -> bool:
        return self.is_up

    def running(self) -> bool:
        return self.is_up

    def _itself(self, *_: object) -> "Stage":
        return self

    def _scenario(self, name: str) -> Callable[..., object]:
        def run(platform: Platform, manifest: Json, *_: object) -> object:
            self.ran.append((name, platform.namespace, str(obj(manifest["metadata"])["name"])))
            platform.say(f"{name} begins")
            return self.results[name]

        return run

    def demo(self) -> str:
        demo(self.workspace, "local", say=self.lines.append)
        return "\n".join(self.lines)


def _returning(client: KubeClient, _: object) -> KubeClient:
    return client


def _saying(platform: Platform, client: object, stack: str, say: Callable[[str], None]) -> Platform:
    del client, stack
    return replace(platform, say=say)


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


def test_every_scenario_runs_once_with_its_example_and_where_its_machines_are(stage: Stage) -> None:
    stage.demo()
    assert [(name, namespace) for name, namespace, _ in stage.ran] == [
        ("restart_on_spot", "tabular"),
        ("restart_on_spot", "vision"),
        ("default_placement", "tabular"),
        ("rayjob_placement", "tabular"),
        ("walk_the_ladder", "tabular"),
        ("keep_the_deadline", "tabular"),
    ]
    assert all(name for _, _, name in stage.ran)


def test_what_happens_is_printed_with_its_time_and_then_what_was_expected(stage: Stage) -> None:
    printed = stage.demo()
    assert "s] restart_on_spot begins" in printed, "with the seconds since the begin"
    assert "a-spot → b-spot" in printed
    verdicts = [line for line in printed.splitlines() if line.rstrip().endswith("yes")]
    assert len(verdicts) == len(stage.ran) + len(["the training of the walk"])
    assert not [line for line in printed.splitlines() if line.rstrip().endswith(" no")]


@pytest.mark.parametrize(
    ("name", "result", "complaint"),
    [
        ("restart_on_spot", restart(restarts=2), "cost 2 restarts"),
        ("rayjob_placement", rayjob(state=""), "without a state"),
        ("walk_the_ladder", walk(moves=()), "the path was none"),
        ("keep_the_deadline", replace(DEADLINE, moves=()), "its moves were []"),
    ],
)
def test_an_unexpected_result_fails_the_demo_after_everything_was_printed(
    stage: Stage, name: str, result: object, complaint: str
) -> None:
    stage.results[name] = result
    with pytest.raises(RehearsalError, match="not as expected") as failed:
        stage.demo()
    assert complaint in str(failed.value)
    assert [line for line in "\n".join(stage.lines).splitlines() if line.rstrip().endswith(" no")]


def test_a_platform_that_is_not_up_is_named_with_the_command(stage: Stage) -> None:
    stage.is_up = False
    with pytest.raises(RehearsalError, match=r"the platform local is not up: run `make up` first"):
        stage.demo()
    assert stage.ran == []
