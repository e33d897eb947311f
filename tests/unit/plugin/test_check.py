"""Which tiers a job reaches, from the facts in its FallbackPolicy; and what a cluster's answers become."""

from collections.abc import Mapping

import pytest

from holdfast.fallback.api.client import ApiError
from holdfast.plugin.check import check_job, job_shapes, tier_facts
from holdfast.plugin.cluster import Cluster, parse_reference
from holdfast.plugin.connection import Answer, warning_text
from holdfast.scheduling.errors import ConfigError
from holdfast.scheduling.json import UNKNOWN, Json
from holdfast.scheduling.labels import GPU_RESOURCE, POOL
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

    def __init__(self, ladder: Json | None, *refusals: ApiError) -> None:
        self._ladder = ladder
        self._refusals = list(refusals)
        self.posted: list[Json] = []

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
        if method == "GET":
            if self._ladder is None:
                raise ApiError(404, "NotFound", f"{path} not found")
            return Answer(document=self._ladder)
        assert query is not None, "a dry run"
        assert query["dryRun"] == "All", "nothing is created"
        assert body is not None, "a manifest"
        self.posted.append(body)
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
    assert "starts on spot-a" in text, "the tier that its pods select"
    assert "tier 2 → pool on-demand: takes it" in text, "the end of the ladder"
    assert "warning: take care" in text, "the API server's warnings are passed on"


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
    assert not is_good, "it reaches no capacity"
    assert words in text, text


def test_tier_without_facts_may_take_the_job() -> None:
    is_good, text = checked(Server(policy({"pool": "spot-a", "maxFailures": 1}, {"pool": "on-demand"})))
    assert is_good, "a missing fact never fails a job"
    assert "may take it" in text, "and is not taken for a yes"


def test_job_that_follows_nothing_is_said_to() -> None:
    job = {**jobset(), "metadata": {"name": "train"}}
    is_good, text = checked(Server(LADDER), job)
    assert is_good, "admission takes it"
    assert "does not follow the ladder" in text, "but it falls back nowhere"


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
    assert text.startswith("jobset/train:"), "under its own name"
    names = [obj(each["metadata"])["name"] for each in server.posted]
    assert names == ["train", "train-check"], "judged under another"


def test_rayjobs_workers_are_counted_and_their_head_is_not() -> None:
    shapes = job_shapes(rayjob())
    assert all(shape.pods >= 1 for shape in shapes), "worker groups"
    assert tier_facts(LADDER)[0].node_pools[0].limits.nodes == 4, "the pool's own limit"
    assert tier_facts(policy({"pool": "x"}))[0].node_pools[0].machines is UNKNOWN, "no facts"


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
    assert parse_reference(written) == (kinds, name), "the forms that users type"


@pytest.mark.parametrize("written", ["pod/train", "jobset/", "", "a/b/c"])
def test_other_references_are_refused(written: str) -> None:
    with pytest.raises(ConfigError, match="allowed: a name, jobset/NAME or rayjob/NAME"):
        parse_reference(written)


@pytest.mark.parametrize(
    ("header", "text"), [('299 - "say \\"no\\""', 'say "no"'), ('299 - "plain"', "plain"), ("odd", "odd")]
)
def test_warning_headers_are_read(header: str, text: str) -> None:
    assert warning_text(header) == text, "as RFC 7234 quotes them"
