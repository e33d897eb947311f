"""The revisions of a Helm release, as helm keeps them in the cluster."""

from collections.abc import Sequence
from dataclasses import dataclass

from rehearsal.json import Json
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping

OWNER_LABEL = "holdfast.dev/release-owner"


@dataclass(frozen=True, kw_only=True)
class Revision:
    """One revision: its number, its status (deployed, failed, pending-install, …), whose resource made it."""

    number: int
    status: str
    owner: str | None
    secret: str

    @property
    def is_interrupted(self) -> bool:
        """Whether helm was killed while it was at it: until somebody clears it up, helm refuses to go on."""
        return self.status.startswith("pending-")


def revisions(client: KubeClient, namespace: str, name: str) -> Sequence[Revision]:
    """Return the revisions of a release, oldest first; none when there is no such release."""
    found = client.list("v1", "Secret", namespace=namespace, label_selector=f"owner=helm,name={name}")
    return sorted((_revision(secret) for secret in found), key=lambda revision: revision.number)


def forget_interrupted(client: KubeClient, namespace: str, name: str) -> Sequence[Revision]:
    """Remove the records of revisions in which helm was killed, and return those that are left.

    What such a revision made bears the release's name: the next install or upgrade takes it over.
    """
    kept: list[Revision] = []
    for revision in revisions(client, namespace, name):
        if revision.is_interrupted:
            client.delete("v1", "Secret", revision.secret, namespace=namespace)
        else:
            kept.append(revision)
    return kept


def _revision(secret: Json) -> Revision:
    metadata = mapping(secret.get("metadata"))
    labels = mapping(metadata.get("labels"))
    owner = labels.get(OWNER_LABEL)
    return Revision(
        number=int(str(labels.get("version", "0"))),
        status=str(labels.get("status")),
        owner=str(owner) if owner else None,
        secret=str(metadata["name"]),
    )
