"""The drill as a command: rights before anything else, the requests that take a node, and the exit code."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

import pytest

from pulumi_holdfast.cli.kubectl.__main__ import build_parser
from pulumi_holdfast.cli.kubectl.cluster import Cluster
from pulumi_holdfast.cli.kubectl.connection import Access
from pulumi_holdfast.cli.kubectl.drill import command
from pulumi_holdfast.controller.jobs.patches import write_state
from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.kubernetes.fallback_policy import API_VERSION
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import PROGRESS, STATE
from tests.support.builders.fallback_objects import NAMESPACE, UID, jobset, worker
from tests.support.builders.job_states import running
from tests.support.fakes.namespace_requests import NamespaceRequests

_ROOT: Final = f"/api/v1/namespaces/{NAMESPACE}/pods"
NODE: Final = "/api/v1/nodes/n1"
CLAIM: Final = "/apis/karpenter.sh/v1/nodeclaims/claim-1"


def pod(name: str, steps: int, node: str) -> Json:
    return worker(name, annotations={PROGRESS: f"{steps}/1000"}, node=node)


def cluster_with(*, claim: bool) -> NamespaceRequests:
    tiers = [{"pool": "spot-a", "maxFailures": 3, "price": 3}, {"pool": "on-demand"}]
    claims: dict[str, Json] = {CLAIM: {"metadata": {"name": "claim-1"}, "status": {"nodeName": "n1"}}}
    return NamespaceRequests(
        objects={
            f"/apis/jobset.x-k8s.io/v1alpha2/namespaces/{NAMESPACE}/jobsets/train": jobset(
                annotations={STATE: write_state(running(uid=UID, pool="spot-a"))}
            ),
            f"/apis/{API_VERSION}/namespaces/{NAMESPACE}/fallbackpolicies/ladder": {"spec": {"tiers": tiers}},
            f"{_ROOT}/old": pod("old", 190, "n1"),
            NODE: {"metadata": {"name": "n1", "finalizers": ["karpenter.sh/termination"]}},
            **(claims if claim else {}),
        }
    )


def replaced(found: NamespaceRequests) -> None:
    """Once something was taken: a new gang, that has gone on from step 160 and passes the old value."""
    is_first = f"{_ROOT}/old" in found.objects
    found.objects.pop(f"{_ROOT}/old", None)
    found.objects[f"{_ROOT}/new"] = pod("new", 160 if is_first else 191, "n2")


def drill(found: NamespaceRequests, monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    @contextmanager
    def opened(access: Access) -> Generator[Cluster]:
        del access
        yield Cluster(found, NAMESPACE)

    def grow(_: float) -> None:
        if f"{_ROOT}/new" in found.objects:
            found.objects[f"{_ROOT}/new"] = pod("new", 191, "n2")

    monkeypatch.setattr(command, "open_cluster", opened)
    monkeypatch.setattr(command.time, "sleep", grow)
    return command.run(build_parser().parse_args(["drill", "jobset/train", *words]))


def test_notice_deletes_the_nodeclaim_as_karpenter_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cluster_with(claim=True)
    found.after = replaced
    assert drill(found, monkeypatch, "--yes", "-o", "json") == 0
    assert found.sent == [("DELETE", CLAIM)]
    report = json.loads(capsys.readouterr().out)
    assert (report["stepsLost"], report["recovered"], report["taken"]) == (30, True, "notice")
    assert report["cost"] is not None


def test_node_without_a_nodeclaim_is_closed_while_its_pods_are_evicted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = cluster_with(claim=False)
    found.after = lambda there: replaced(there) if there.sent[-1][0] == "POST" else None
    assert drill(found, monkeypatch, "--yes") == 0
    assert found.sent == [("PATCH", NODE), ("POST", f"{_ROOT}/old/eviction"), ("PATCH", NODE)]
    assert "unschedulable" not in str(found.objects[NODE])


def test_node_is_open_again_after_an_eviction_that_the_server_refuses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = cluster_with(claim=False)
    failed = ApiError(500, "InternalError", "a webhook failed")
    found.refused = lambda _, path: failed if path.endswith("/eviction") else None
    with pytest.raises(ApiError, match="a webhook failed"):
        drill(found, monkeypatch, "--yes")
    assert found.sent == [("PATCH", NODE), ("PATCH", NODE)]
    assert "unschedulable" not in str(found.objects[NODE])


def test_node_that_an_administrator_closed_stays_closed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cluster_with(claim=False)
    found.objects[NODE] = {"metadata": {"name": "n1"}, "spec": {"unschedulable": True}}
    found.after = replaced
    assert drill(found, monkeypatch, "--yes") == 0
    assert found.sent == [("POST", f"{_ROOT}/old/eviction")]
    assert "the node stays cordoned" in capsys.readouterr().err


def test_node_that_is_gone_at_the_end_is_not_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=False)

    def react(there: NamespaceRequests) -> None:
        if there.sent[-1][0] == "POST":
            replaced(there)
            del there.objects[NODE]

    found.after = react
    assert drill(found, monkeypatch, "--yes") == 0


def test_node_that_cannot_be_opened_again_is_named_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=False)

    def react(there: NamespaceRequests) -> None:
        if there.sent[-1][0] == "POST":
            replaced(there)
            there.refused = lambda _method, _path: Unreachable("the current context", "timed out")

    found.after = react
    with pytest.raises(ConfigError, match="Run `kubectl uncordon n1`"):
        drill(found, monkeypatch, "--yes")


def test_vanish_removes_the_node_before_anything_can_drain_it(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=True)
    found.after = lambda there: replaced(there) if there.sent[-1] == ("DELETE", CLAIM) else None
    assert drill(found, monkeypatch, "--vanish", "--yes") == 0
    assert found.sent == [("PATCH", NODE), ("DELETE", NODE), ("DELETE", CLAIM)]


def test_more_lost_steps_than_allowed_are_the_exit_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = cluster_with(claim=True)
    found.after = replaced
    assert drill(found, monkeypatch, "--yes", "--max-lost-steps", "29") == 1
    assert "30 steps were lost; allowed by --max-lost-steps: 29" in capsys.readouterr().err


def test_missing_right_is_named_before_anything_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=True)
    found.granted = lambda asked: asked["resource"] != "nodeclaims"
    with pytest.raises(ConfigError, match=r"no right to delete nodeclaims\.karpenter\.sh"):
        drill(found, monkeypatch, "--yes")
    assert found.sent == []


def test_without_a_terminal_and_without_yes_nothing_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=True)
    with pytest.raises(ConfigError, match="--yes"):
        drill(found, monkeypatch)
    assert found.sent == []


@pytest.mark.parametrize(("answer", "code", "sent"), [("n\n", 3, 0), ("\n", 3, 0), ("y\n", 0, 1)])
def test_user_is_asked_first(monkeypatch: pytest.MonkeyPatch, answer: str, code: int, sent: int) -> None:
    found = cluster_with(claim=True)
    found.after = replaced
    monkeypatch.setattr(command.sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(command.sys.stdin, "readline", lambda: answer, raising=False)
    assert drill(found, monkeypatch) == code
    assert len(found.sent) == sent


def test_taking_by_hand_writes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    found = cluster_with(claim=True)
    moved = iter([None, replaced])

    def cloud(_: float) -> None:
        act = next(moved, replaced)
        if act is not None:
            act(found)

    monkeypatch.setattr(command.time, "sleep", cloud)
    found_code = drill_by_hand(found, monkeypatch, cloud)
    assert found_code == 0
    assert found.sent == []


def drill_by_hand(found: NamespaceRequests, monkeypatch: pytest.MonkeyPatch, cloud: object) -> int:
    @contextmanager
    def opened(access: Access) -> Generator[Cluster]:
        del access
        yield Cluster(found, NAMESPACE)

    monkeypatch.setattr(command, "open_cluster", opened)
    monkeypatch.setattr(command.time, "sleep", cloud)
    return command.run(build_parser().parse_args(["drill", "jobset/train", "--by-hand"]))
