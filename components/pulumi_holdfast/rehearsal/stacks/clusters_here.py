"""The clusters of the stacks that run on this machine, by the addresses that their simulated clouds gave them.

The names of a cloud lead from one cluster to another. Here they lead to the control plane of the stack that has the name.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from pulumi_holdfast.ladder.json import Json, mapping, sequence
from pulumi_holdfast.rehearsal.clouds.aws.cluster import CLUSTER
from pulumi_holdfast.rehearsal.clouds.state import CloudState, Inventory
from pulumi_holdfast.rehearsal.control_plane.configuration import (
    KubeconfigCluster,
    Layout,
    authentication_configuration,
    read_cluster,
)
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.errors import Cancellation, KubeCancelled, RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace

_log = logging.getLogger(__name__)

# EKS takes some 15 minutes.
_PAUSE_SECONDS: Final = 1.0

TRUST: Final = "aws:eks/identityProviderConfig:IdentityProviderConfig"


@dataclass(frozen=True, kw_only=True)
class ClusterHere:
    """A cluster with its real control plane; `issuer` is that of its tokens on this machine."""

    cluster: KubeconfigCluster
    issuer: str


@dataclass(frozen=True)
class ClustersHere:
    """The EKS clusters of the stacks in a workspace that run."""

    workspace: Workspace

    def at(self, server: str) -> KubeconfigCluster | None:
        """Return the cluster whose cloud says that its API server has this address; None if it does not run here."""
        found = self._first(lambda outputs: outputs.get("endpoint") == server)
        return None if found is None else found.cluster

    def issuing(self, issuer: str) -> ClusterHere | None:
        """Return the cluster whose cloud says that its tokens have this issuer; None if it does not run here."""
        return self._first(lambda outputs: issuer_of(outputs) == issuer)

    def _first(self, is_wanted: Callable[[Json], bool]) -> ClusterHere | None:
        for folder in sorted(each.parent for each in self.workspace.state_dir.glob("*/kubeconfig")):
            state = EngineFolder.of(folder.name, self.workspace).cloud_states / "aws.json"
            if state.is_file() and any(
                is_wanted(each.outputs) for each in CloudState(state).read().of_type(CLUSTER)
            ):
                return self._cluster_of(folder.name)
        return None

    def _cluster_of(self, stack: str) -> ClusterHere | None:
        try:
            cluster = read_cluster(self.workspace.kubeconfig(stack))
        except RehearsalError:  # its control plane was removed meanwhile
            return None
        return ClusterHere(cluster=cluster, issuer=Layout.of(stack, self.workspace).issuer)


def issuer_of(cluster: Json) -> str:
    """The issuer in the outputs of an EKS cluster, empty if there is none."""
    identity = mapping(next(iter(sequence(cluster.get("identities"))), None))
    return str(mapping(next(iter(sequence(identity.get("oidcs"))), None)).get("issuer") or "")


def authentication(cloud: Inventory, clusters: ClustersHere) -> Json:
    """Return the AuthenticationConfiguration of an API server whose EKS cluster has these identity provider configs.

    An issuer that does not run here is left out: its keys could not be read.
    """
    found: list[Json] = []
    for each in cloud.of_type(TRUST):
        asked = mapping(each.inputs.get("oidc"))
        home = clusters.issuing(str(asked.get("issuerUrl")))
        if home is not None:
            found.append(_authenticator(asked, home))
    return authentication_configuration(found)


@dataclass(frozen=True, kw_only=True)
class ConfiguredTrust:
    """Keeps the AuthenticationConfiguration of an API server, which reads it again when it changes, as `cloud` wants it.

    Does nothing without `file`, the configuration that the API server started with.
    """

    cloud: CloudState
    clusters: ClustersHere
    file: Path

    def keep(self) -> None:
        """Write the configuration if the cloud has changed it. Raises RehearsalError if the cloud's state cannot be read."""
        if not (self.file.is_file() and self.cloud.file.is_file()):
            return
        text = yaml.safe_dump(authentication(self.cloud.read(), self.clusters))
        if self.file.read_text(encoding="utf-8") != text:
            draft = self.file.with_suffix(".new")
            draft.write_text(text, encoding="utf-8")
            draft.replace(self.file)

    def run(self, cancellation: Cancellation) -> None:
        """Keep it until canceled."""
        try:
            while True:
                try:
                    self.keep()
                except (RehearsalError, OSError):
                    _log.exception("cannot configure the issuers that the API server trusts")
                cancellation.pause(_PAUSE_SECONDS)
        except KubeCancelled:
            return


def _authenticator(asked: Json, home: ClusterHere) -> Json:
    """What EKS is asked for, with the address of the issuer on this machine in place of its address in the cloud."""
    return {
        "issuer": {
            "url": home.issuer,
            "discoveryURL": f"{home.cluster.server}/.well-known/openid-configuration",
            "certificateAuthority": home.cluster.authority.decode("ascii"),
            "audiences": [asked.get("clientId")],
        },
        "claimValidationRules": [
            {"claim": claim, "requiredValue": value}
            for claim, value in mapping(asked.get("requiredClaims")).items()
        ],
        "claimMappings": {
            "username": {"claim": asked.get("usernameClaim"), "prefix": asked.get("usernamePrefix", "")}
        },
    }
