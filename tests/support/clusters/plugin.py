"""A cluster with the fallback controller, a user with the rights of one namespace, and the plugin as the user installs it."""

import os
import subprocess
import sysconfig
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

import yaml

from pulumi_holdfast.cli.kubectl.bundle import build
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.kubernetes.namespace_roles import NamespaceRole, namespace_rules
from pulumi_holdfast.ladder.json import Json
from tests.support.clusters.operators import STACK
from tests.support.clusters.reconciler import NAMESPACE, LoopCluster, Replica, replica
from tests.support.json_objects import obj, objects

#: What the stack says about the pools: one machine of four CPUs, two of them at most.
FACTS: Final[Json] = {
    "machines": [{"name": "m7i.xlarge", "cpu": "4", "memory": "16Gi", "gpus": 0, "pods": 58}],
    "maxNodes": 2,
}
SPOT: Final[Json] = {**FACTS, "capacity": "spot"}
TIERS: Final = (
    {"pool": "spot-a", "maxFailures": 3, "facts": SPOT},
    {"pool": "spot-b", "maxFailures": 3, "facts": SPOT},
    {"pool": "on-demand", "facts": {**FACTS, "maxNodes": 8, "capacity": "on-demand"}},
)

RBAC: Final = "rbac.authorization.k8s.io/v1"
USER: Final = "scientist"
TRAINER: Final = "trainer"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_TOKEN_SECONDS: Final = 7200


@dataclass(frozen=True, kw_only=True)
class PluginCluster:
    """The cluster, the controller, and kubectl with the plugin on its path."""

    loop: LoopCluster
    controller: Replica
    folder: Path
    plugin: Path

    @property
    def user(self) -> Path:
        """The kubeconfig of a user with the Role `submit` in the training namespace and no other right."""
        return self.folder / "user.kubeconfig"

    @property
    def administrator(self) -> Path:
        """The kubeconfig of the administrator."""
        return self.loop.workspace.kubeconfig(STACK)

    def environment(self, kubeconfig: Path) -> Mapping[str, str]:
        """The environment of a user's shell."""
        scripts = sysconfig.get_path("scripts")
        paths = os.pathsep.join([str(self.plugin.parent), scripts, os.environ["PATH"]])
        # An own home: kubectl caches what the API server serves, and a port may have been another cluster's.
        return {"PATH": paths, "KUBECONFIG": str(kubeconfig), "HOME": str(self.folder)}

    def kubectl(
        self, *words: str, kubeconfig: Path | None = None, stdin: str | None = None, seconds: float = 180
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl as the user, or with another kubeconfig."""
        return subprocess.run(
            ["kubectl", *words],
            env=self.environment(kubeconfig or self.user),
            cwd=self.folder,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )

    def start(self, *words: str, kubeconfig: Path | None = None) -> subprocess.Popen[str]:
        """Start kubectl and return its process."""
        return subprocess.Popen(
            ["kubectl", *words],
            env=self.environment(kubeconfig or self.user),
            cwd=self.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


@contextmanager
def plugin_cluster(loop: LoopCluster, folder: Path) -> Generator[PluginCluster]:
    """Add the user, the plugin and the controller to a cluster, for the length of the block."""
    plugin = folder / "bin" / "kubectl-holdfast"
    build(plugin)
    loop.apply(*_account(USER, namespace_rules(NamespaceRole.SUBMIT)))
    loop.apply(*_account(TRAINER, [{"apiGroups": [""], "resources": ["pods"], "verbs": ["patch"]}]))
    loop.forget_leader()
    with replica(loop.kubeconfig, folder) as controller:
        controller.wait_ready()
        found = PluginCluster(loop=loop, controller=controller, folder=folder, plugin=plugin)
        found.user.write_text(yaml.safe_dump(_kubeconfig(loop)))
        yield found


def _account(name: str, rules: Sequence[Json]) -> list[Json]:
    """A service account with a Role of these rules in the training namespace."""
    within: Json = {"name": name, "namespace": NAMESPACE}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": within},
        {"apiVersion": RBAC, "kind": "Role", "metadata": within, "rules": list(rules)},
        {
            "apiVersion": RBAC,
            "kind": "RoleBinding",
            "metadata": within,
            "roleRef": role_ref("Role", name),
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        },
    ]


def _kubeconfig(loop: LoopCluster) -> Json:
    """The user's kubeconfig: the administrator's cluster with the token of the service account."""
    given = cast("Json", yaml.safe_load(loop.kubeconfig.read_text()))
    cluster = obj(objects(given["clusters"])[0])
    token = loop.client.service_account_token(NAMESPACE, USER, _TOKEN_SECONDS)
    context: Json = {"cluster": cluster["name"], "user": USER, "namespace": NAMESPACE}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [cluster],
        "users": [{"name": USER, "user": {"token": token}}],
        "contexts": [{"name": "training", "context": context}],
        "current-context": "training",
    }
