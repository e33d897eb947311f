"""Who a pod is to Google Cloud. Pure."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class ProjectIdentities:
    """The identities of a project's pods: those of all its clusters together, which GKE does not tell apart.

    `project` is the project's id, `number` its number: a principal's name holds both.
    """

    project: str
    number: str

    @property
    def pool(self) -> str:
        """The pool that they are in; there is none before the project's first cluster."""
        return f"{self.project}.svc.id.goog"

    def principal(self, *, namespace: str, service_account: str) -> str:
        """The pods of a service account, in whichever of the project's clusters, as a grant names them."""
        pools = f"projects/{self.number}/locations/global/workloadIdentityPools"
        subject = f"ns/{namespace}/sa/{service_account}"
        return f"principal://iam.googleapis.com/{pools}/{self.pool}/subject/{subject}"
