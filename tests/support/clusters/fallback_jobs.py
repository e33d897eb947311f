"""A ladder on a real cluster with the controller at work on it: what jobs make of it, and what is said of them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Final, cast

from holdfast.components.fallback_policy.definition import API_VERSION, KIND
from holdfast.components.pools.karpenter import KWOK
from holdfast.fallback.jobs.kinds import KINDS
from holdfast.scheduling.labels import LADDER, STATE
from tests.support.fallback_cluster import NAMESPACE
from tests.support.fallback_jobs import pods_of, pools_of
from tests.support.json_objects import obj

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from holdfast.scheduling.json import Json, JsonValue
    from holdfast.simulator.kubernetes_client.client import KubeClient
    from tests.support.loop_processes import Replica

SECONDS: Final = 90.0
STOCK: Final = "rehearsal.holdfast.dev/stock"


class Ladder:
    """The FallbackPolicy of the training namespace, and the jobs that follow it."""

    def __init__(self, client: KubeClient, controller: Replica) -> None:
        self.client = client
        self._controller = controller

    def says(self, *tiers: Json, **conduct: str) -> None:
        """Put a policy of these tiers in force."""
        policy: Json = {
            "apiVersion": API_VERSION,
            "kind": KIND,
            "metadata": {"name": LADDER, "namespace": NAMESPACE},
            "spec": {"tiers": list(tiers), **conduct},
        }
        # Anew, so that nothing of the one before is left.
        self.client.delete(API_VERSION, KIND, LADDER, namespace=NAMESPACE)
        self.client.wait_for(
            API_VERSION,
            KIND,
            LADDER,
            namespace=NAMESPACE,
            timeout_seconds=SECONDS,
            condition=lambda found: found is None,
            what="the policy before is gone",
        )
        self.client.create(policy)

    def is_taken_away(self) -> None:
        """Delete the policy."""
        self.client.delete(API_VERSION, KIND, LADDER, namespace=NAMESPACE)

    def sells(self, pool: str, *, anything: bool) -> None:
        """Have a pool's machines sold out, and none of them left, or on sale again."""
        patch: Json = {"metadata": {"annotations": {STOCK: None if anything else "0"}}}
        self.client.merge_patch(KWOK.api_version, KWOK.kind, pool, patch)
        if not anything:
            self._give_back(pool)

    def _give_back(self, pool: str) -> None:
        of_pool = f"karpenter.sh/nodepool={pool}"
        for claim in self.client.list("karpenter.sh/v1", "NodeClaim", label_selector=of_pool):
            self.client.delete("karpenter.sh/v1", "NodeClaim", str(obj(claim["metadata"])["name"]))
        self.client.wait_list(
            "karpenter.sh/v1",
            "NodeClaim",
            label_selector=of_pool,
            timeout_seconds=SECONDS,
            condition=lambda claims: not claims,
            what=f"no machine of {pool} is left",
        )

    def job(self, name: str, kind: str = "JobSet") -> Json:
        """A job as it is, empty where there is none."""
        return self.client.get(KINDS[kind].api_version, kind, name, NAMESPACE) or {}

    def patch(self, name: str, patch: Json, kind: str = "JobSet") -> None:
        """Change a job as its user does."""
        self.client.merge_patch(KINDS[kind].api_version, kind, name, patch, namespace=NAMESPACE)

    def state(self, name: str, kind: str = "JobSet") -> Mapping[str, object]:
        """What is kept of a job, empty where nothing is."""
        text = obj(obj(self.job(name, kind).get("metadata")).get("annotations")).get(STATE)
        return cast("Mapping[str, object]", json.loads(text)) if isinstance(text, str) else {}

    def is_suspended(self, name: str, kind: str = "JobSet") -> bool:
        """Whether a job's spec says so."""
        return obj(self.job(name, kind).get("spec")).get("suspend") is True

    def wait_running(
        self, name: str, pool: str, *, pods: int = 2, kind: str = "JobSet"
    ) -> Mapping[str, object]:
        """Wait until the ladder knows that the whole gang has nodes in a pool; returns what is kept of the job."""

        def runs() -> bool:
            kept = self.state(name, kind)
            return (
                (kept.get("phase"), kept.get("pool")) == ("Running", pool)
                and pools_of(self.client, name).count(pool) >= pods
                and not self.is_suspended(name, kind)
            )

        self.wait(runs, name, f"{name} runs on {pool}", kind)
        return self.state(name, kind)

    def wait_phase(self, name: str, phase: str, kind: str = "JobSet") -> Mapping[str, object]:
        """Wait until a job is in a phase; returns what is kept of it."""
        self.wait(lambda: self.state(name, kind).get("phase") == phase, name, f"{name} is {phase}", kind)
        return self.state(name, kind)

    def wait_said(self, name: str, reason: str, kind: str = "JobSet") -> str:
        """Wait until an Event of a reason is there; returns its message."""
        self.wait(lambda: reason in self.said(name), name, f"{reason} is said of {name}", kind)
        return self.said(name)[reason]

    def said(self, name: str) -> dict[str, str]:
        """The controller's Events about a job: messages by reason, the latest of each."""
        events = [
            each
            for each in self.client.list("v1", "Event", namespace=NAMESPACE)
            if obj(each["involvedObject"]).get("name") == name
            and obj(each.get("source")).get("component") == "holdfast-fallback"
        ]
        return {str(each["reason"]): str(each["message"]) for each in sorted(events, key=_when)}

    def wait(
        self,
        condition: Callable[[], bool],
        name: str,
        what: str,
        kind: str = "JobSet",
        *,
        seconds: float = SECONDS,
    ) -> None:
        """Look until something holds of a job."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self._as_it_is(name, what, kind)
            time.sleep(0.1)

    def _as_it_is(self, name: str, what: str, kind: str) -> str:
        pods = [
            f"{obj(pod['metadata'])['name']} {obj(pod['status']).get('phase')} on {obj(pod['spec']).get('nodeName')}"
            for pod in pods_of(self.client, name)
        ]
        return (
            f"it never came about: {what}\nstate {self.state(name, kind)}\n"
            f"suspended {self.is_suspended(name, kind)}\npods {pods}\nsaid {self.said(name)}\n"
            + "\n".join(str(line) for line in self._controller.log()[-40:])
        )


def tier(pool: str, **limits: JsonValue) -> Json:
    """A tier of a ladder."""
    return {"pool": pool, **limits}


def _when(event: Json) -> str:
    return str(event.get("lastTimestamp") or event.get("firstTimestamp"))
