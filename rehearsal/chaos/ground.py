"""A cluster made ready for a fault run, and left as it was."""

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rehearsal.chaos.arena import NAMESPACE, POOLS, pool_objects
from rehearsal.controlplane.layout import Layout
from rehearsal.kube.client import KubeClient
from rehearsal.kube.summary import mapping
from rehearsal.scenes.training_twin import twin_namespace
from rehearsal.scenes.waiting import SECONDS
from scheduling.holding import CONTROLLER, CONTROLLER_NAMESPACE
from scheduling.json import Json

_FIELD_MANAGER: Final = "holdfast-chaos"
_TOKEN_SECONDS: Final = 24 * 3600


@dataclass(frozen=True, kw_only=True)
class Ground:
    """A cluster with JobSet, Karpenter's simulated provider, FallbackPolicies and a training namespace.

    `folder` is where logs are written.
    """

    client: KubeClient
    layout: Layout
    folder: Path

    def apply(self, *objects: Json) -> None:
        """Create or change objects."""
        for each in objects:
            self.client.apply(each, field_manager=_FIELD_MANAGER, force=True)

    def token(self) -> str | None:
        """Return a token of the controller's own account, None where it has none and acts as the administrator."""
        if self.client.get("v1", "ServiceAccount", CONTROLLER, CONTROLLER_NAMESPACE) is None:
            return None
        return self.client.service_account_token(CONTROLLER_NAMESPACE, CONTROLLER, _TOKEN_SECONDS)

    @contextmanager
    def prepared(self, *objects: Json) -> Generator[None]:
        """Have the pools, and the namespace with `objects`, for the length of the block, and no controller but the run's."""
        replicas = self._scale(0)
        try:
            self._remove_pools()
            self.apply(*pool_objects())
            with twin_namespace(self.client, NAMESPACE, *objects):
                yield
        finally:
            self._remove_pools()
            if replicas:
                self._scale(replicas)

    def _scale(self, replicas: int) -> int:
        """Have so many replicas of the cluster's own controller; returns how many there were, 0 without any."""
        found = self.client.get("apps/v1", "Deployment", CONTROLLER, CONTROLLER_NAMESPACE)
        if found is None:
            return 0
        patch: Json = {"spec": {"replicas": replicas}}
        self.client.merge_patch("apps/v1", "Deployment", CONTROLLER, patch, namespace=CONTROLLER_NAMESPACE)
        self.client.wait_list(
            "v1",
            "Pod",
            namespace=CONTROLLER_NAMESPACE,
            timeout_seconds=SECONDS,
            condition=lambda pods: len(pods) == replicas,
            what=f"{CONTROLLER} has {replicas} pods",
        )
        before = mapping(found.get("spec")).get("replicas")
        return before if isinstance(before, int) else 1

    def _remove_pools(self) -> None:
        for pool in POOLS:
            self.client.delete("karpenter.sh/v1", "NodePool", pool)
        for pool in POOLS:
            self.client.wait_for(
                "karpenter.sh/v1",
                "NodePool",
                pool,
                timeout_seconds=SECONDS,
                condition=lambda found: found is None,
                what=f"NodePool {pool} is gone, and its nodes with it",
            )
            self.client.delete("karpenter.kwok.sh/v1alpha1", "KWOKNodeClass", pool)
