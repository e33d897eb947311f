"""Which tiers a job reaches, from the facts in its FallbackPolicy; and what a cluster's answers become."""

import json
import os
import sysconfig
from collections.abc import Mapping
from dataclasses import replace
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest

from pulumi_holdfast.cli.kubectl.check import check_job, read_jobs
from pulumi_holdfast.cli.kubectl.cluster import Cluster, parse_reference
from pulumi_holdfast.cli.kubectl.connection import Access, Answer, warning_text
from pulumi_holdfast.controller.jobs.judgement import job_shapes
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, GPU_RESOURCE, POOL, SPOT
from pulumi_holdfast.ladder.reachability.facts import read_tiers
from tests.support.background import Silent, served
from tests.support.builders.fallback_objects import jobset, pod_spec, rayjob, replicated_job
from tests.support.json_objects import obj


def facts(*, capacity: str = "spot", cpu: str = "8", nodes: int = 4, gpus: int = 0) -> Json:
    machine: Json = {"name": "m7i", "cpu": cpu, "memory": "32Gi", "gpus": gpus}
    return {"capacity": capacity, "machines": [machine], "maxNodes": nodes}


def policy(*tiers: Json) -> Json:
    return {"spec": {"tiers": list(tiers)}}


LADDER = policy(
    {"pool": "spot-a", "maxFailures": 3, "procurementTimeout": "15m", "facts": facts()},
    {"pool": "on-demand", "facts": facts(capacity="on-demand")},
)


class Server:
    """An API server with a FallbackPolicy, which admits or rejects what is posted."""

    def __init__(self, ladder: Json | None, *refusals: ApiError, pods: ApiError | None = None) -> None:
        self._ladder = ladder
        self._pods = pods
        self._refusals = list(refusals)
        self.posted: list[Json] = []
        self.paths: list[str] = []

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        del content_type
        self.paths.append(path)
        if method == "GET":
            if self._ladder is None:
                raise ApiError(404, "NotFound", f"{path} not found")
            return Answer(document=self._ladder)
        assert query is not None
        assert query["dryRun"] == "All"
        assert body is not None
        self.posted.append(body)
        if self._pods is not None and body["kind"] == "Pod":
            raise self._pods
        if self._refusals:
            raise self._refusals.pop(0)
        return Answer(document=body, warnings=("take care",))


def checked(server: Server, job: Json | None = None) -> tuple[bool, str]:
    found = check_job(Cluster(server, "vision"), job or jobset())
    return found.is_good, "\n".join(found.lines)


def wants(**requests: str) -> Json:
    spec = pod_spec({POOL: "spot-a"}, containers=[{"name": "train", "resources": {"requests": requests}}])
    return jobset(replicated_job(template=spec))


def test_job_that_fits_everywhere_reaches_on_demand() -> None:
    is_good, text = checked(Server(LADDER))
    assert is_good, text
    assert "starts on spot-a" in text
    assert "tier 2 → pool on-demand: takes it" in text
    assert "warning: take care" in text


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (wants(cpu="9"), "tier 1 → pool spot-a: does not take it"),
        (wants(**{GPU_RESOURCE: "1"}), "does not take it"),
        (jobset(replicated_job(selector={POOL: "spot-a"}, parallelism=40)), "does not take it"),
    ],
)
def test_job_without_room_on_a_tier_has_the_reason(job: Json, words: str) -> None:
    is_good, text = checked(Server(LADDER), job)
    assert not is_good
    assert words in text


def test_tier_without_facts_may_take_the_job() -> None:
    is_good, text = checked(Server(policy({"pool": "spot-a", "maxFailures": 1}, {"pool": "on-demand"})))
    assert is_good
    assert "may take it" in text


@pytest.mark.parametrize("pool", [None, "spot-b", "east/spot-c"])
def test_job_that_admission_puts_on_no_tier_is_not_good(pool: str | None) -> None:
    ladder = policy(
        {"pool": "spot-a", "maxFailures": 3}, {"cluster": "east", "pool": "spot-b"}, {"pool": "on-demand"}
    )
    selector = {"example.com/rack": "r1"} if pool is None else {POOL: pool}
    is_good, text = checked(Server(ladder), jobset(replicated_job(selector=selector)))
    assert not is_good, "the controller ignores it, whatever the first tier would do with it"
    assert (f"the pool {pool}" if pool else "no pool, or several") in text
    assert "the ladder has spot-a, on-demand" in text
    assert "takes it\n" not in text


def test_manifest_is_judged_in_its_own_namespace() -> None:
    server = Server(LADDER)
    elsewhere = jobset()
    checked(server, {**elsewhere, "metadata": {**obj(elsewhere["metadata"]), "namespace": "speech"}})
    assert obj(server.posted[0]["metadata"])["namespace"] == "speech", "where `kubectl apply` would create it"
    assert all("/namespaces/speech/" in path for path in server.paths)


def test_manifest_of_another_namespace_than_the_option_is_refused_as_kubectl_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{sysconfig.get_path('scripts')}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("HOME", str(tmp_path))
    manifest = tmp_path / "job.json"
    manifest.write_text(json.dumps({**jobset(), "metadata": {"name": "train", "namespace": "speech"}}))
    with served(Discovery) as address:
        server = {"clusters": [{"name": "c", "cluster": {"server": address}}]}
        context = {"contexts": [{"name": "x", "context": {"cluster": "c"}}], "current-context": "x"}
        (tmp_path / "kubeconfig").write_text(
            json.dumps({"apiVersion": "v1", "kind": "Config", **server, **context})
        )
        access = Access(kubeconfig=str(tmp_path / "kubeconfig"))
        (found,) = read_jobs(access, str(manifest))
        assert obj(found["metadata"])["namespace"] == "speech"
        (found,) = read_jobs(replace(access, namespace="speech"), str(manifest))
        assert obj(found["metadata"])["namespace"] == "speech"
        with pytest.raises(ConfigError, match=r'-n: got "vision" \(.*"speech".*Leave -n out'):
            read_jobs(replace(access, namespace="vision"), str(manifest))


class Discovery(Silent, BaseHTTPRequestHandler):
    """Answers what kubectl asks before it reads a JobSet."""

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        group, version = "jobset.x-k8s.io", "v1alpha2"
        resource: Json = {
            "name": "jobsets",
            "singularName": "",
            "namespaced": True,
            "kind": "JobSet",
            "verbs": ["create"],
        }
        version_of: Json = {"groupVersion": f"{group}/{version}", "version": version}
        answers: dict[str, Json] = {
            "/api": {"kind": "APIVersions", "versions": ["v1"]},
            "/apis": {
                "kind": "APIGroupList",
                "groups": [{"name": group, "versions": [version_of], "preferredVersion": version_of}],
            },
            f"/apis/{group}/{version}": {
                "kind": "APIResourceList",
                "groupVersion": f"{group}/{version}",
                "resources": [resource],
            },
            "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
        }
        content = answers.get(path, {})
        body = json.dumps(content).encode()
        self.send_response(200 if content else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def test_job_that_follows_nothing_is_said_to() -> None:
    job = {**jobset(), "metadata": {"name": "train"}}
    is_good, text = checked(Server(LADDER), job)
    assert is_good
    assert "does not follow the ladder" in text


def test_job_that_stays_on_spot_is_not_good_and_says_why() -> None:
    job = {**jobset(replicated_job(selector={CAPACITY_TYPE: SPOT})), "metadata": {"name": "train"}}
    is_good, text = checked(Server(LADDER), job)
    assert not is_good
    assert "Nothing moves it to on-demand" in text


def test_pod_that_the_server_refuses_is_named_in_its_words() -> None:
    why = 'pods "train-worker-0-" is forbidden: violates PodSecurity "baseline:latest"'
    is_good, text = checked(Server(LADDER, pods=ApiError(403, "Forbidden", why)))
    assert not is_good
    assert f"The API server refuses a pod of worker: {why}." in text


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ApiError(403, "Forbidden", 'pods is forbidden: User "x" cannot create resource "pods"'), "a pod of worker"),
        (ApiError(503, "Unavailable", "starting"), "does not answer"),
    ],
)  # fmt: skip
def test_what_the_user_may_not_ask_is_not_judged(error: ApiError, words: str) -> None:
    is_good, text = checked(Server(LADDER, pods=error))
    assert is_good, text
    assert "  not judged: " in text
    assert words in text


def test_namespace_without_a_ladder_fails_the_check() -> None:
    assert not checked(Server(None))[0], "the job would stay where it is"


def test_rejection_has_the_api_servers_message() -> None:
    refused = ApiError(403, "Forbidden", "ValidatingAdmissionPolicy 'x' denied request: no room")
    with pytest.raises(ConfigError, match=r"jobset/train: got .*no room.*; allowed: "):
        checked(Server(LADDER, refused))


def test_refused_right_names_the_role() -> None:
    refused = ApiError(403, "Forbidden", 'jobsets is forbidden: User "x" cannot create resource "jobsets"')
    with pytest.raises(ConfigError, match="holdfast-submit"):
        checked(Server(LADDER, refused))


def test_manifest_of_a_job_that_exists_is_judged_as_a_new_one() -> None:
    server = Server(LADDER, ApiError(409, "AlreadyExists", "it exists"))
    is_good, text = checked(server)
    assert is_good, text
    assert text.startswith("jobset/train:")
    names = [obj(each["metadata"])["name"] for each in server.posted if each["kind"] == "JobSet"]
    assert names == ["train", "train-check"]


def test_rayjobs_workers_are_counted_and_their_head_is_not() -> None:
    shapes = job_shapes(rayjob())
    assert all(shape.pods >= 1 for shape in shapes)
    assert read_tiers(LADDER)[0].node_pools[0].limits.nodes == 4
    assert read_tiers(policy({"pool": "x"}))[0].node_pools[0].machines is UNKNOWN


@pytest.mark.parametrize(
    ("written", "kinds", "name"),
    [
        ("train", ("JobSet", "RayJob"), "train"),
        ("jobset/train", ("JobSet",), "train"),
        ("jobsets.jobset.x-k8s.io/train", ("JobSet",), "train"),
        ("RayJobs/train", ("RayJob",), "train"),
    ],
)
def test_job_is_named_as_kubectl_names_objects(written: str, kinds: tuple[str, ...], name: str) -> None:
    assert parse_reference(written) == (kinds, name)


@pytest.mark.parametrize("written", ["pod/train", "jobset/", "", "a/b/c"])
def test_other_references_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="allowed: a name, jobset/NAME or rayjob/NAME"):
        parse_reference(written)


@pytest.mark.parametrize(
    ("header", "text"), [('299 - "say \\"no\\""', 'say "no"'), ('299 - "plain"', "plain"), ("odd", "odd")]
)
def test_warning_headers_are_read(header: str, text: str) -> None:
    assert warning_text(header) == text
