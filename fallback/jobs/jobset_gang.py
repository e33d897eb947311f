"""The pods that a JobSet wants to run at once, from its templates and what its Jobs have done already."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from holdfast.fallback.jobs.selection import followers
from holdfast.fallback.jobs.values import condition_of, count, mapping, metadata_of, objects, text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.scheduling.json import Json

REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"


@dataclass(frozen=True, kw_only=True)
class ReplicatedJob:
    """One of a JobSet's templates. `follows`: its pods are the tier's to place."""

    name: str
    spec: Json
    follows: bool

    @property
    def replicas(self) -> int:
        """How many Jobs are made of it."""
        return count(self.spec.get("replicas"), 1)

    @property
    def job_spec(self) -> Json:
        """What each of its Jobs is made from."""
        return mapping(mapping(self.spec.get("template")).get("spec"))

    @property
    def template(self) -> Json:
        """The template of their pods."""
        return mapping(self.job_spec.get("template"))

    @property
    def pod_spec(self) -> Json:
        """What their pods are made from."""
        return mapping(self.template.get("spec"))

    @property
    def pods_at_once(self) -> int:
        """How many pods one of its Jobs runs at a time."""
        parallelism = count(self.job_spec.get("parallelism"), 1)
        completions = count(self.job_spec.get("completions"), parallelism)
        return min(parallelism, completions)


def replicated_jobs(jobset: Json) -> tuple[ReplicatedJob, ...]:
    """Return a JobSet's templates in their order."""
    specs = objects(mapping(jobset.get("spec")).get("replicatedJobs"))
    plain = [ReplicatedJob(name=text(spec.get("name")), spec=spec, follows=True) for spec in specs]
    follow = followers([each.template for each in plain])
    return tuple(
        ReplicatedJob(name=each.name, spec=each.spec, follows=flag)
        for each, flag in zip(plain, follow, strict=True)
    )


def pods_expected(jobset: Json, children: Sequence[Json]) -> int:
    """How many pods of the tier's are to run now.

    Not those that have completed, and not those of a template whose turn has not come: one that waits for another to
    be ready or done holds no node, and must not look like a lack of capacity.
    """
    in_order = (
        mapping(mapping(jobset.get("spec")).get("startupPolicy")).get("startupPolicyOrder") == "InOrder"
    )
    suspended = mapping(jobset.get("spec")).get("suspend") is True
    expected = 0
    for place, each in enumerate(replicated_jobs(jobset)):
        made = [child for child in children if replicated_job_of(child) == each.name]
        begun = made if suspended else [child for child in made if not _is_suspended(child)]
        waits = (in_order and place > 0) or bool(objects(each.spec.get("dependsOn")))
        if each.follows and (begun or not waits):
            expected += _wanted(each, made)
    return expected


def replicated_job_of(child: Json) -> str:
    """Return the name of the template that a child Job or a pod is made from."""
    return text(mapping(metadata_of(child).get("labels")).get(REPLICATED_JOB))


def is_complete(child: Json) -> bool:
    """Whether a child Job has done what it was for."""
    return _has(child, "Complete")


def has_failed(child: Json) -> bool:
    """Whether a child Job has failed: JobSet answers to that, whether it is suspended or not."""
    return _has(child, "Failed")


def will_fail(child: Json) -> bool:
    """Whether a child Job is bound to fail, and has not yet.

    One that is suspended stays so for ever, all its pods gone (tried on 1.36), and fails once it is resumed.
    """
    return _has(child, "FailureTarget") and not has_failed(child)


def _has(child: Json, condition: str) -> bool:
    return condition_of(child, condition).get("status") == "True"


def _wanted(each: ReplicatedJob, made: Sequence[Json]) -> int:
    missing = max(0, each.replicas - len(made))
    return missing * each.pods_at_once + sum(_wanted_by(child, each.pods_at_once) for child in made)


def _wanted_by(child: Json, at_once: int) -> int:
    if is_complete(child):
        return 0
    completions = mapping(child.get("spec")).get("completions")
    if completions is None:
        return at_once
    return max(0, min(at_once, count(completions) - count(mapping(child.get("status")).get("succeeded"))))


def _is_suspended(child: Json) -> bool:
    return mapping(child.get("spec")).get("suspend") is True
