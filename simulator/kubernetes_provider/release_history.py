"""The revisions of a Helm release, as helm keeps them in the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

from holdfast.scheduling.json import Json
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.objects import mapping

OWNER_LABEL = "holdfast.dev/release-owner"


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One revision: its number, its status (deployed, failed, pending-install, …), whose resource made it."""

    number: int
    status: str
    owner: str | None = None

    @property
    def is_interrupted(self) -> bool:
        """Whether helm was killed while it was at it: until somebody clears it up, helm refuses to go on."""
        return self.status.startswith("pending-")


def revisions(client: KubeClient, namespace: str, name: str) -> Sequence[Revision]:
    """Return the revisions of a release, oldest first; none when there is no such release."""
    found = client.list("v1", "Secret", namespace=namespace, label_selector=f"owner=helm,name={name}")
    return sorted((_revision(secret) for secret in found), key=lambda revision: revision.number)


def last_whole(history: Sequence[Revision]) -> int | None:
    """Return the number of the last revision that helm brought to an end, None when there is none."""
    return next((each.number for each in reversed(history) if not each.is_interrupted), None)


def _revision(secret: Json) -> Revision:
    labels = mapping(mapping(secret.get("metadata")).get("labels"))
    owner = labels.get(OWNER_LABEL)
    return Revision(
        number=int(str(labels.get("version", "0"))),
        status=str(labels.get("status")),
        owner=str(owner) if owner else None,
    )
