"""Prepares a cluster for a fault run; the cluster is removed after the run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from holdfast.rehearsal.scenarios.namespace_clone import clone_namespace
from holdfast.rehearsal.scenarios.provisioning import WAIT_SECONDS
from holdfast.scheduling.json import Json
from holdfast.scheduling.labels import CONTROLLER, CONTROLLER_NAMESPACE
from holdfast.simulator.control_plane.configuration import Layout
from holdfast.simulator.kubernetes_client.client import KubeClient
from tests.soak.faults.manifests import NAMESPACE, pool_objects

_FIELD_MANAGER: Final = "holdfast-faults"
_TOKEN_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class FaultEnvironment:
    """A cluster with JobSet, Karpenter's simulated provider, FallbackPolicies and a training namespace.

    `folder` receives the logs.
    """

    client: KubeClient
    layout: Layout
    folder: Path

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for each in objects:
            self.client.apply(each, field_manager=_FIELD_MANAGER, force=True)

    def token(self) -> str | None:
        """Return a token of the controller's service account; None if there is none, and the administrator is used."""
        if self.client.get("v1", "ServiceAccount", CONTROLLER, CONTROLLER_NAMESPACE) is None:
            return None
        return self.client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, _TOKEN_SECONDS)

    def prepare(self, *objects: Json) -> None:
        """Create the pools and the namespace with `objects`, and stop the controller of the stack."""
        self._stop_controller()
        self.apply(*pool_objects())
        clone_namespace(self.client, NAMESPACE, *objects)

    def _stop_controller(self) -> None:
        if self.client.get("apps/v1", "Deployment", CONTROLLER, CONTROLLER_NAMESPACE) is None:
            return
        patch: Json = {"spec": {"replicas": 0}}
        self.client.merge_patch("apps/v1", "Deployment", CONTROLLER, patch, namespace=CONTROLLER_NAMESPACE)
        self.client.wait_list(
            "v1",
            "Pod",
            namespace=CONTROLLER_NAMESPACE,
            timeout_seconds=WAIT_SECONDS,
            condition=lambda pods: not pods,
            what=f"{CONTROLLER} has no pods",
        )
