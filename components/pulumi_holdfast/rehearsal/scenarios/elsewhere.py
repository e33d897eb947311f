"""The scenario of a tier in another cluster: a JobSet moves there, goes on from its checkpoint, and returns to better capacity at home."""

import threading
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final

from pulumi_holdfast.controller.kube.objects import name_of, uid_of
from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.ladder.labels import CHECKPOINT_URI, LADDER
from pulumi_holdfast.rehearsal.errors import FAILURES, RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.operator_runner.pod_spec import resolve_environment
from pulumi_holdfast.rehearsal.scenarios.karpenter import restock, sell_out
from pulumi_holdfast.rehearsal.scenarios.ladder_walk import events_printed
from pulumi_holdfast.rehearsal.scenarios.manifests import pod_count
from pulumi_holdfast.rehearsal.scenarios.placement import is_running
from pulumi_holdfast.rehearsal.scenarios.platform import FIELD_MANAGER, Platform, applied
from pulumi_holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from pulumi_holdfast.rehearsal.timeline.recorder import JOBSET, JobTimelineRecorder
from pulumi_holdfast.rehearsal.timeline.traces import JobTrace

_POLICY: Final = ("holdfast.dev/v1alpha1", "FallbackPolicy", LADDER)
_APPLIED_METADATA: Final = ("name", "namespace", "labels", "annotations")
_SELECTOR: Final = "jobset.sigs.k8s.io/jobset-name="
#: How many steps the program trains in each place.
STEPS: Final = 1000
# The times of the ladder for the length of the scenario. A busy computer takes a minute to have a machine ready.
_ENOUGH: Final = "2m"
_NOT_LONG: Final = "10s"
_RETURN_AFTER: Final = "20s"
_LOOK_SECONDS: Final = 0.5


@dataclass(frozen=True, kw_only=True)
class Site:
    """A stack that is up: its platform, with the training namespace of the scenario."""

    name: str
    platform: Platform


@dataclass(frozen=True, kw_only=True)
class Training:
    """What the program did in one place: it went on from a step, and wrote another to the address of its checkpoints."""

    site: str
    pool: str
    address: str
    resumed_from: int
    saved: int


@dataclass(frozen=True, kw_only=True)
class RoundTrip:
    """The result: what the program did at home, there and at home again, and how long both moves took.

    `together` names pods that ran in both clusters at the same time; `copy_is_gone`: nothing of the copy is left there.
    """

    jobset: str
    trainings: tuple[Training, ...]
    seconds: tuple[float, float]
    together: tuple[str, ...]
    copy_is_gone: bool


def round_trip(seen: RoundTrip) -> str:
    """Return the result in one line."""
    way = " → ".join(f"{each.pool} in {each.site}" for each in seen.trainings)
    there, back = seen.seconds
    return (
        f"{way} (after {there:.0f} s and {back:.0f} s); step {seen.trainings[-1].resumed_from} carried over"
    )


def unmet_by_round_trip(seen: RoundTrip, *, home: str, there: str) -> list[str]:
    """Home, there, home; each time from the last step of the one before, at one address; never in both; no copy is left."""
    sites = [each.site for each in seen.trainings]
    pairs = list(zip(seen.trainings, seen.trainings[1:], strict=False))
    lost = [
        f"in {after.site} it began at step {after.resumed_from} and not at {before.saved}"
        for before, after in pairs
        if after.resumed_from != before.saved
    ]
    moved = sorted({each.address for each in seen.trainings})
    problems = [
        (sites != [home, there, home], f"it ran in {', '.join(sites)}"),
        (len(moved) != 1, f"its checkpoints have {len(moved)} addresses: {', '.join(moved)}"),
        (bool(seen.together), f"it ran in both clusters: {'; '.join(seen.together)}"),
        (not seen.copy_is_gone, f"its copy in {there} is left"),
    ]
    return [*(problem for is_wrong, problem in problems if is_wrong), *lost]


def tier_elsewhere(policies: Sequence[Json]) -> tuple[str, Json]:
    """Return the first namespace whose ladder has a tier in another cluster, and its policy. Raises RehearsalError if there is none."""
    found = {
        str(mapping(each.get("metadata")).get("namespace")): each
        for each in policies
        if any("cluster" in tier for tier in tiers_of(each))
    }
    if not found:
        raise RehearsalError("no training namespace has a tier in another cluster: add one to its ladder")
    return min(found.items())


def tiers_of(policy: Json) -> list[Json]:
    """The tiers of a FallbackPolicy."""
    return [mapping(tier) for tier in sequence(mapping(policy.get("spec")).get("tiers"))]


def tiers_above(policy: Json) -> list[Json]:
    """The tiers above the first one in another cluster, which there must be."""
    tiers = tiers_of(policy)
    return tiers[: next(index for index, tier in enumerate(tiers) if "cluster" in tier)]


def hurried(policy: Json) -> Json:
    """Return the spec of a policy with which one failure leads to the tier elsewhere, and capacity at home back at once."""
    spec, tiers = mapping(policy["spec"]), tiers_of(policy)
    above = [
        {**tier, "maxFailures": 1, "procurementTimeout": _NOT_LONG if index else _ENOUGH}
        for index, tier in enumerate(tiers_above(policy))
    ]
    return {
        **spec,
        "tiers": [*above, *tiers[len(above) :]],
        "returnAfter": _RETURN_AFTER,
        "holdTimeout": _ENOUGH,
    }


@contextmanager
def hurrying(client: KubeClient, policy: Json) -> Generator[None]:
    """Let the ladder of a namespace hurry for the length of the block."""
    _write_ladder(client, policy, hurried(policy))
    try:
        yield
    finally:
        _write_ladder(client, policy, mapping(policy["spec"]))


def _write_ladder(client: KubeClient, policy: Json, spec: Json) -> None:
    """Apply another spec as the manager that has applied the policy: the next `up` would conflict with any other one."""
    metadata = mapping(policy["metadata"])
    managers = [mapping(each) for each in sequence(metadata.get("managedFields"))]
    manager = next((each["manager"] for each in managers if each.get("operation") == "Apply"), FIELD_MANAGER)
    kept = {key: metadata[key] for key in _APPLIED_METADATA if key in metadata}
    api_version, kind, _ = _POLICY
    ladder: Json = {"apiVersion": api_version, "kind": kind, "metadata": kept, "spec": spec}
    client.apply(ladder, field_manager=str(manager), force=True)


def move_there_and_back(home: Site, there: Site, jobset: Json) -> RoundTrip:
    """Run the scenario with this JobSet, which is created at home, in a namespace with a tier in the cluster of `there`.

    Raises KubeTimeout or RehearsalError if a condition is not met in time.
    """
    namespace = home.platform.namespace
    policy = home.platform.client.get(*_POLICY, namespace)
    if policy is None:
        raise RehearsalError(f"namespace {namespace} of {home.name} has no ladder: run the rehearsal again")
    above = [str(tier["pool"]) for tier in tiers_above(policy)]
    recorders = tuple(JobTimelineRecorder(each.platform.client, namespace) for each in (home, there))
    trip = _Trip(home=home, there=there, recorders=recorders, jobset=jobset, above=above)
    with ExitStack() as stack:
        stack.enter_context(hurrying(home.platform.client, policy))
        stack.callback(lambda: [restock(home.platform.client, pool) for pool in above])
        for recorder, site in zip(recorders, (home, there), strict=True):
            stack.enter_context(recorder.recording())
            stack.enter_context(events_printed(site.platform))
        stack.enter_context(applied(home.platform, jobset))
        home.platform.say(
            f"JobSet {name_of(jobset)} applied: above the tier in {there.name} is {', '.join(above)}"
        )
        with _watched(trip) as together:
            return trip.run(together)


@dataclass(frozen=True, kw_only=True)
class _Trip:
    home: Site
    there: Site
    recorders: tuple[JobTimelineRecorder, ...]
    jobset: Json
    above: Sequence[str]
    checkpoints: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def name(self) -> str:
        return name_of(self.jobset)

    def run(self, together: Sequence[str]) -> RoundTrip:
        first = self.above[0]
        self._wait(self.home, lambda trace: self._runs(trace, first), f"{self.name} runs on {first}")
        trained = [self._train(self.home, first)]
        for pool in self.above:
            sell_out(self.home.platform.client, pool)
        self.home.platform.say(f"{', '.join(self.above)} has no capacity")
        left = self._evict()
        self._wait(self.there, self._is_whole, f"the copy of {self.name} runs")
        away = _since(left)
        with self.recorders[1].frozen():
            pool = self._trace(self.there).alive()[0].pool
        trained.append(self._train(self.there, pool))
        for each in self.above:
            restock(self.home.platform.client, each)
        self.home.platform.say(f"{', '.join(self.above)} has capacity again")
        freed = datetime.now(UTC)
        self._wait(
            self.home,
            lambda trace: self._is_whole(trace) and self._runs(trace, trace.last.pool),
            f"{self.name} runs at home again",
        )
        back = _since(freed)
        with self.recorders[0].frozen():
            pool = self._trace(self.home).last.pool
        trained.append(self._train(self.home, pool))
        self._wait(
            self.there,
            lambda trace: not trace.is_there and not trace.alive(),
            f"the copy of {self.name} is gone",
        )
        return RoundTrip(
            jobset=self.name,
            trainings=tuple(trained),
            seconds=(away, back),
            together=tuple(together),
            copy_is_gone=self.there.platform.client.get(*JOBSET, self.name, self.home.platform.namespace)
            is None,
        )

    def _trace(self, site: Site) -> JobTrace:
        return self.recorders[0 if site is self.home else 1].job(self.name)

    def _wait(self, site: Site, condition: Callable[[JobTrace], bool], what: str) -> None:
        recorder = self.recorders[0 if site is self.home else 1]
        trace = recorder.job(self.name)
        recorder.wait(lambda: bool(trace.changes) and condition(trace), what, seconds=2 * WAIT_SECONDS)
        site.platform.say(what)

    def _runs(self, trace: JobTrace, pool: str) -> bool:
        last = trace.last
        return (last.phase, last.pool, last.suspended) == ("Running", pool, False) and self._is_whole(trace)

    def _is_whole(self, trace: JobTrace) -> bool:
        pools = {pod.pool for pod in trace.alive()}
        return len(pools) == 1 and len(trace.running_in(pools.pop())) == pod_count(self.jobset)

    def _evict(self) -> datetime:
        with self.recorders[0].frozen():
            node = min(pod.node for pod in self._trace(self.home).alive())
        interrupt = self.home.platform.provisioner.interruption(node, self.home.platform.say)
        at = datetime.now(UTC)
        interrupt()
        return at

    def _train(self, site: Site, pool: str) -> Training:
        """Play the program in a place: read the last step at the address that the pods have, and write a later one."""
        address = _checkpoints_of(site, self.name)
        began = self.checkpoints.get(address, 0)
        saved = self.checkpoints[address] = began + STEPS
        site.platform.say(f"step {saved} is written to {address}, from step {began} on")
        return Training(site=site.name, pool=pool, address=address, resumed_from=began, saved=saved)


def _checkpoints_of(site: Site, jobset: str) -> str:
    """Return the address of checkpoints that the running pods of a job have."""
    client, namespace = site.platform.client, site.platform.namespace

    def lookup(kind: str, name: str) -> Mapping[str, str] | None:
        found = client.get("v1", kind, name, namespace)
        return (
            None if found is None else {key: str(value) for key, value in mapping(found.get("data")).items()}
        )

    pods = [pod for pod in site.platform.pods(f"{_SELECTOR}{jobset}") if is_running(pod)]
    addresses = {resolve_environment(pod, lookup).get(CHECKPOINT_URI, "") for pod in pods}
    if len(addresses) != 1 or not all(addresses):
        raise RehearsalError(
            f"the pods of {jobset} in {site.name} have {len(addresses)} addresses of checkpoints: read {CHECKPOINT_URI} "
            "from the ConfigMap checkpoints in each of them"
        )
    (address,) = addresses
    return address


def _since(begin: datetime) -> float:
    return (datetime.now(UTC) - begin).total_seconds()


@contextmanager
def _watched(trip: _Trip) -> Generator[Sequence[str]]:
    """Look for pods of the job in both clusters for the length of the block; the list receives what is found."""
    found, ended = list[str](), threading.Event()

    def look() -> None:
        while not ended.wait(_LOOK_SECONDS):
            try:
                line = _together(trip)
            except FAILURES:
                continue  # an API server that does not answer shows nothing
            if line and line not in found:
                found.append(line)

    thread = threading.Thread(target=look, name="both clusters", daemon=True)
    thread.start()
    try:
        yield found
    finally:
        ended.set()
        thread.join()


def _together(trip: _Trip) -> str:
    """Return the pods that existed in both clusters at one time, empty for none.

    A pod that is there before and after the other cluster was read existed at that time too.
    """
    before = {uid_of(pod) for pod in _alive(trip.there, trip.name)}
    at_home = [name_of(pod) for pod in _alive(trip.home, trip.name)] if before else []
    after = (
        [name_of(pod) for pod in _alive(trip.there, trip.name) if uid_of(pod) in before] if at_home else []
    )
    return f"{', '.join(sorted(at_home))} with {', '.join(sorted(after))}" if after else ""


def _alive(site: Site, jobset: str) -> list[Json]:
    pods = site.platform.pods(f"{_SELECTOR}{jobset}")
    return [pod for pod in pods if mapping(pod.get("status")).get("phase") not in {"Succeeded", "Failed"}]
