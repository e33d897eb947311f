"""Reads and writes objects for the plugin's commands, and checks the user's permissions.

Every rejection of the API server becomes an error that names the permission, the object or the field, and the fix.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.controller.jobs.kinds import KINDS, job_of_child, job_of_pod
from pulumi_holdfast.controller.jobs.pod_history import PodHistory
from pulumi_holdfast.controller.jobs.pods_and_nodes import JobKey, Snapshot
from pulumi_holdfast.controller.kube.client import (
    EVENT,
    FALLBACK_POLICY,
    JOB,
    JOBSET,
    MERGE,
    POD,
    RAYCLUSTER,
    RAYJOB,
    ApiError,
    Kind,
)
from pulumi_holdfast.controller.kube.objects import name_of, objects, text
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.fallback_policy import parse_policy
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping
from pulumi_holdfast.ladder.labels import LADDER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_holdfast.cli.kubectl.connection import Answer, Requests
    from pulumi_holdfast.controller.jobs.observation import Observation
    from pulumi_holdfast.ladder.ladder import NoPolicy, Policy

JOB_KINDS: Final[Mapping[str, Kind]] = {kind.name: kind for kind in (JOBSET, RAYJOB)}
_COMPONENT: Final = "holdfast-fallback"
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403


@dataclass(frozen=True, kw_only=True)
class Right:
    """One right of RBAC, in a namespace or in the cluster (None)."""

    verb: str
    group: str
    resource: str
    namespace: str | None = None

    def __str__(self) -> str:
        """The right as messages name it."""
        where = f" in the namespace {self.namespace}" if self.namespace else ""
        return f"{self.verb} {self.resource}{f'.{self.group}' if self.group else ''}{where}"


class Cluster:
    """One namespace of a cluster, as its user may read and change it."""

    def __init__(self, requests: Requests, namespace: str) -> None:
        self._requests = requests
        self.namespace = namespace

    def within(self, namespace: str) -> Cluster:
        """Return another namespace of the cluster, for the same user."""
        return self if namespace == self.namespace else Cluster(self._requests, namespace)

    def job(self, key: JobKey) -> Json:
        """Return a job. Raises ConfigError if there is none of that name."""
        found = self.find(JOB_KINDS[key.kind], key.name)
        if found is None:
            raise ConfigError([self._unknown_job(key.name, [key.kind])])
        return {**found, "apiVersion": JOB_KINDS[key.kind].api_version, "kind": key.kind}

    def job_named(self, reference: str) -> JobKey:
        """Return the job that the user names: `train`, `jobset/train` or `rayjob/train`.

        Raises ConfigError if there is none, or if a JobSet and a RayJob have the name.
        """
        kinds, name = parse_reference(reference)
        there = [kind for kind in kinds if self.find(JOB_KINDS[kind], name) is not None]
        if not there:
            raise ConfigError([self._unknown_job(name, kinds)])
        if len(there) > 1:
            raise ConfigError.of(
                field="job",
                value=f'"{name}", which a JobSet and a RayJob have',
                allowed="the name of one job",
                fix=f"Write jobset/{name} or rayjob/{name}.",
            )
        return JobKey(there[0], self.namespace, name)

    def jobs(self) -> list[Json]:
        """Return all jobs of both kinds; none of a kind that the cluster does not serve."""
        return [
            {**each, "apiVersion": kind.api_version, "kind": kind.name}
            for kind in JOB_KINDS.values()
            for each in self.list(kind)
        ]

    def policy(self) -> Policy | NoPolicy:
        """Return the namespace's ladder."""
        return parse_policy(self.policy_object())

    def policy_object(self) -> Json | None:
        """Return the namespace's FallbackPolicy; None if it has none."""
        return self.find(FALLBACK_POLICY, LADDER)

    def events(self, uid: str = "") -> list[Json]:
        """Return the controller's Events, of one job or of all. An earlier job of the same name has another uid."""
        selector = f"source={_COMPONENT}{f',involvedObject.uid={uid}' if uid else ''}"
        return [
            {**event, "reason": _one_line(event.get("reason")), "message": _one_line(event.get("message"))}
            for event in self.list(EVENT, fields=selector)
        ]

    def pods(self, key: JobKey) -> list[Json]:
        """Return the pods of a job."""
        return [pod for pod in self.list(POD) if job_of_pod(pod) == key]

    def observe(self, key: JobKey, job: Json) -> Observation:
        """Return the controller's observation of a job, from the job, its pods and its children, without nodes."""
        found = [{**each, "kind": kind.name} for kind in (JOB, RAYCLUSTER) for each in self.list(kind)]
        snapshot = Snapshot(
            job=job,
            now=datetime.now(UTC),
            pods=tuple(self.pods(key)),
            children=tuple(each for each in found if job_of_child(each) == key),
        )
        return KINDS[key.kind].observe(snapshot, PodHistory())[0]

    def find(self, kind: Kind, name: str) -> Json | None:
        """Return one object; None if it does not exist, or if its kind is not served."""
        namespace = self.namespace if kind.namespaced else None
        try:
            return self.send("GET", kind.item(namespace, name)).document
        except ApiError as error:
            if error.is_missing:
                return None
            raise

    def list(self, kind: Kind, *, fields: str = "", everywhere: bool = False) -> list[Json]:
        """Return the objects of a kind, in the namespace or in all; none if the kind is not served."""
        namespace = None if everywhere else self.namespace
        query = {"fieldSelector": fields} if fields else {}
        try:
            found = self.send("GET", kind.collection(namespace), query=query).document
        except ApiError as error:
            if error.is_missing:
                return []
            raise
        return list(objects(found.get("items")))

    def patch(self, kind: Kind, name: str, patch: Json) -> Json:
        """Change an object by a merge patch and return it."""
        namespace = self.namespace if kind.namespaced else None
        return self.send("PATCH", kind.item(namespace, name), body=patch, content_type=MERGE).document

    def delete(self, kind: Kind, name: str, *, body: Json | None = None) -> None:
        """Request the deletion of an object."""
        self.send("DELETE", kind.item(self.namespace if kind.namespaced else None, name), body=body)

    def send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Send a request. Raises ConfigError where the user has no right to it, ApiError for other rejections."""
        try:
            return self._requests.request(method, path, query=query, body=body, content_type=content_type)
        except ApiError as error:
            if error.status == _UNAUTHORIZED or (error.status == _FORBIDDEN and _is_about_rights(error)):
                raise ConfigError([_refused(error, self.namespace)]) from error
            raise

    def may(self, right: Right) -> bool:
        """Whether the API server grants the user a right."""
        resource, _, subresource = right.resource.partition("/")
        asked = {
            "verb": right.verb,
            "group": right.group,
            "resource": resource,
            "subresource": subresource,
            "namespace": right.namespace or "",
        }
        review: Json = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": asked},
        }
        path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
        return mapping(self.send("POST", path, body=review).document.get("status")).get("allowed") is True

    def _unknown_job(self, name: str, kinds: Sequence[str]) -> Problem:
        there = sorted(
            f"{kind.lower()}/{name_of(each)}" for kind in kinds for each in self.list(JOB_KINDS[kind])
        )
        return Problem(
            field="job",
            value=f'"{name}", which the namespace {self.namespace} does not have',
            allowed=", ".join(there) or "none: it has no such jobs",
            fix="Name one of them, or another namespace with -n.",
        )


def parse_reference(reference: str) -> tuple[tuple[str, ...], str]:
    """Return the kinds and the name in a job's reference. Raises ConfigError for another kind or no name."""
    written, slash, name = reference.rpartition("/")
    word = written.lower().partition(".")[0].removesuffix("s")
    kinds = tuple(kind for kind in KINDS if not slash or kind.lower() == word)
    if kinds and name and "/" not in written:
        return kinds, name
    raise ConfigError.of(
        field="job",
        value=f'"{reference}"',
        allowed="a name, jobset/NAME or rayjob/NAME",
        fix="Name a job; `kubectl holdfast jobs` lists them.",
    )


def rejected(error: ApiError, what: str, fix: str) -> ConfigError:
    """Return the error for a write that the API server rejected."""
    return ConfigError.of(
        field=what,
        value=f"a change that the API server rejects ({text(error.message) or error.reason})",
        allowed="what its schema and admission policies allow",
        fix=fix,
    )


def _one_line(value: JsonValue) -> str:
    """Text of an Event, which its author may have written in several lines to look like more of them."""
    return " ".join(text(value).split())


def _is_about_rights(error: ApiError) -> bool:
    """Whether RBAC refused, and not an admission policy: both answer 403."""
    return " cannot " in error.message and "admission" not in error.message.lower()


def _refused(error: ApiError, namespace: str) -> Problem:
    return Problem(
        field="rights",
        value=error.message or error.reason,
        allowed=f"the rights of the Role holdfast-submit in the namespace {namespace}; `jobs` and `why` need holdfast-view",
        fix="Request the Role from the cluster's administrators, or choose another context with --context.",
    )
