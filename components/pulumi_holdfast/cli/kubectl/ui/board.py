"""The view model of the page: lanes, jobs, timelines. Pure; the page draws exactly this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pulumi_holdfast.cli.kubectl.history import history_lines
from pulumi_holdfast.cli.kubectl.job_view import JobView, duration_text, event_time, job_row, job_view
from pulumi_holdfast.controller.kube.objects import objects, text, uid_of
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.ladder import NoPolicy, Policy, Tier
from pulumi_holdfast.ladder.quantities import format_duration

#: Longer timelines are cut at their beginning.
MOST_SPANS: Final = 200
#: The lane of jobs that are on no tier.
ELSEWHERE: Final = "not on the ladder"


@dataclass(frozen=True, kw_only=True)
class Span:
    """A time that a job spent on one pool in one phase; `end` is None while it lasts."""

    pool: str
    phase: str
    start: datetime
    end: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What was read of the namespace at one moment."""

    namespace: str
    context: str
    now: datetime
    policy: Policy | NoPolicy
    jobs: Sequence[Json]
    events: Sequence[Json]


def with_spans(
    spans: Mapping[str, tuple[Span, ...]], views: Sequence[JobView], now: datetime
) -> Mapping[str, tuple[Span, ...]]:
    """Return the timelines with the jobs as they are now; those of deleted jobs are dropped."""
    return {view.uid: _continued(spans.get(view.uid, ()), view, now) for view in views}


def _continued(known: tuple[Span, ...], view: JobView, now: datetime) -> tuple[Span, ...]:
    pool = view.pool or ELSEWHERE
    if known and (known[-1].pool, known[-1].phase) == (pool, view.phase):
        return known
    if not known:
        # The first reading knows since when the job is on its tier, and nothing from before.
        return (Span(pool=pool, phase=view.phase, start=min(now, view.waiting_since or view.since or now)),)
    closed = (*known[:-1], replace(known[-1], end=now))
    return (*closed, Span(pool=pool, phase=view.phase, start=now))[-MOST_SPANS:]


def views_of(reading: Reading) -> list[JobView]:
    """Return the views of all jobs, by name."""
    found = [job_view(job, reading.policy, reading.events) for job in reading.jobs]
    return sorted(found, key=lambda view: view.reference)


def board(reading: Reading, spans: Mapping[str, tuple[Span, ...]]) -> Json:
    """Return what the page shows."""
    by_uid = {uid_of(job): job for job in reading.jobs}
    views = views_of(reading)
    tiers = reading.policy.tiers if isinstance(reading.policy, Policy) else ()
    lanes = [_lane(number, tier) for number, tier in enumerate(tiers, 1)]
    names = {tier.name for tier in tiers}
    if any(view.pool not in names for view in views) or not lanes:
        lanes.append({"pool": ELSEWHERE, "title": ELSEWHERE, "facts": []})
    return {
        "namespace": reading.namespace,
        "context": reading.context,
        "now": _stamp(reading.now),
        "problems": [] if isinstance(reading.policy, Policy) else list(_problems(reading.policy)),
        "lanes": lanes,
        "jobs": [_job(view, by_uid[view.uid], reading, spans.get(view.uid, ()), names) for view in views],
    }


def _problems(policy: NoPolicy) -> tuple[str, ...]:
    return policy.problems or ("The namespace has no FallbackPolicy.",)


def _lane(number: int, tier: Tier) -> Json:
    facts: list[str] = []
    if tier.facts.capacity is not None:
        facts.append(tier.facts.capacity.value)
    if tier.max_failures is not None and tier.max_failures >= 0:
        facts.append(f"{max(1, tier.max_failures)} failures move a job on")
    if tier.procurement_timeout is not None:
        facts.append(f"waits {format_duration(tier.procurement_timeout)} for nodes")
    if tier.facts.max_nodes is not None:
        facts.append(f"at most {tier.facts.max_nodes} nodes")
    return {"pool": tier.name, "title": f"{number} · {tier.name}", "facts": facts}


def _job(view: JobView, job: Json, reading: Reading, spans: tuple[Span, ...], names: set[str]) -> Json:
    own = [each for each in reading.events if mapping(each.get("involvedObject")).get("uid") == view.uid]
    _, _, _, phase, failures, waiting, limit, cost, reason = job_row(view, reading.now)
    return {
        "id": view.uid,
        "name": view.reference,
        "lane": view.pool if view.pool in names else ELSEWHERE,
        "phase": phase,
        "tone": _tone(view),
        "failures": failures,
        "waiting": waiting,
        "limit": limit,
        "reason": reason,
        "cost": cost,
        "history": list(history_lines(job, reading.policy, own, reading.now)),
        "spans": [_span(each, reading.now) for each in spans],
        "marks": [_mark(each) for each in objects(own) if event_time(each) is not None],
    }


def _tone(view: JobView) -> str:
    """Return how a job is marked: good, waiting, moving, stopped, ended or bad."""
    if view.is_late or view.phase == "GivenUp":
        return "bad"
    return {
        "Running": "good",
        "Waiting": "waiting",
        "Suspending": "moving",
        "Paused": "moving",
        "Finished": "ended",
    }.get(view.phase, "stopped")


def _span(span: Span, now: datetime) -> Json:
    end = span.end or now
    return {
        "pool": span.pool,
        "phase": span.phase,
        "start": _stamp(span.start),
        "end": _stamp(end),
        "lasts": duration_text(end - span.start),
    }


def _mark(event: Json) -> Json:
    at = event_time(event)
    return {
        "at": _stamp(at) if at else "",
        "reason": text(event.get("reason")),
        "message": text(event.get("message")),
        "warning": event.get("type") == "Warning",
    }


def _stamp(at: datetime) -> str:
    return at.isoformat()
