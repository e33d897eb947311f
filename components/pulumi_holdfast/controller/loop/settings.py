"""The controller's command line."""

import argparse
import os
import secrets
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from pulumi_holdfast.controller.kube.access import (
    SERVICE_ACCOUNT,
    ApiAccess,
    address_fault,
    from_kubeconfig,
    in_cluster,
)
from pulumi_holdfast.ladder.labels import CONTROLLER_NAMESPACE, LEASE
from pulumi_holdfast.ladder.ladder import is_dns_label

PLACEHOLDER_IMAGE: Final = (
    "registry.k8s.io/pause:3.10.1@sha256:278fb9dbcca9518083ad1e11276933a2e96f23de604a3a08cc3c80002767d24c"
)

_LEVELS: Final = ("debug", "info", "warning", "error")


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings of a process.

    `kubeconfig` None: the pod's own service account. `namespace` has the Lease `lease`; `identity` is unique to this
    process. `address`, `port`: where metrics and health are served; port 0 for a free one. `workers`: how many jobs are
    reconciled concurrently. `placeholder_image`: what placeholder pods run. `webhook_url_file`: has the URL that people are notified through;
    None for no notifications. `karpenter_metrics`: the address of Karpenter's metrics, for prices; None for a cluster without.
    `clusters`: kubeconfigs of the other clusters of ladders, by name.
    """

    kubeconfig: Path | None
    namespace: str
    lease: str
    identity: str
    address: str
    port: int
    workers: int
    log_level: str
    placeholder_image: str
    webhook_url_file: Path | None = None
    karpenter_metrics: str | None = None
    clusters: Mapping[str, Path] = field(default_factory=dict[str, Path])

    def access(self) -> ApiAccess:
        """Return the access to the API server. Raises ConfigError if it is unknown."""
        if self.kubeconfig is not None:
            return from_kubeconfig(self.kubeconfig)
        return in_cluster(os.environ)

    def other_clusters(self) -> Mapping[str, Callable[[], ApiAccess]]:
        """Return how each of the other clusters of ladders is accessed."""
        return {name: partial(from_kubeconfig, path) for name, path in self.clusters.items()}


def parse_settings(
    arguments: Sequence[str], variables: Mapping[str, str], *, account: Path = SERVICE_ACCOUNT
) -> Settings:
    """Parse the command line. Exits with a usage message if it is invalid."""
    parser = argparse.ArgumentParser(
        prog="python -m pulumi_holdfast.controller",
        description="Moves JobSets and RayJobs along their ladder: failover and failback.",
    )
    parser.add_argument(
        "--kubeconfig",
        type=Path,
        default=Path(variables["KUBECONFIG"]) if variables.get("KUBECONFIG") else None,
        help="kubeconfig of the API server (default: $KUBECONFIG, else the pod's own service account)",
    )
    parser.add_argument(
        "--namespace", default=_own_namespace(account), help="namespace of the Lease (default: the pod's own)"
    )
    parser.add_argument("--lease", default=LEASE, help="name of the Lease (default: %(default)s)")
    parser.add_argument(
        "--address",
        default="0.0.0.0",  # noqa: S104  # probes and scrapes come from outside the pod
        help="address of metrics and health (default: %(default)s)",
    )
    parser.add_argument("--port", type=_port, default=8080, help="port of metrics and health (default: 8080)")
    parser.add_argument(
        "--workers", type=_positive, default=16, help="jobs to reconcile concurrently (default: %(default)s)"
    )
    parser.add_argument("--log-level", choices=_LEVELS, default="info")
    parser.add_argument(
        "--placeholder-image",
        default=PLACEHOLDER_IMAGE,
        help="image of placeholder pods, which does nothing (default: %(default)s)",
    )
    parser.add_argument(
        "--webhook-url-file",
        type=Path,
        help="file with the URL of a webhook that is notified of moves, late jobs and jobs given up (default: none)",
    )
    parser.add_argument(
        "--karpenter-metrics",
        type=_address,
        metavar="URL",
        help="where Karpenter shows its metrics, for the prices of pools (default: none)",
    )
    parser.add_argument(
        "--cluster",
        type=_cluster,
        action="append",
        default=[],
        metavar="NAME=KUBECONFIG",
        help="another cluster of ladders, by the name that tiers have for it; may be repeated (default: none)",
    )
    given = parser.parse_args(arguments)
    return Settings(
        kubeconfig=given.kubeconfig,
        namespace=given.namespace,
        lease=given.lease,
        identity=f"{socket.gethostname()}_{secrets.token_hex(4)}",
        address=given.address,
        port=given.port,
        workers=given.workers,
        log_level=given.log_level,
        placeholder_image=given.placeholder_image,
        webhook_url_file=given.webhook_url_file,
        karpenter_metrics=given.karpenter_metrics,
        clusters=dict(given.cluster),
    )


def _own_namespace(account: Path) -> str:
    file = account / "namespace"
    return file.read_text(encoding="utf-8").strip() if file.is_file() else CONTROLLER_NAMESPACE


def _address(given: str) -> str:
    if not given.startswith(("http://", "https://")):
        raise argparse.ArgumentTypeError(f"{given} does not begin with http:// or https://")
    if (fault := address_fault(given)) is not None:
        raise argparse.ArgumentTypeError(f"{given} is {fault}")
    return given


def _cluster(given: str) -> tuple[str, Path]:
    name, _, path = given.partition("=")
    if not is_dns_label(name) or not path:
        raise argparse.ArgumentTypeError(f"{given} is not NAME=KUBECONFIG, such as us-east-2=/etc/us-east-2")
    return name, Path(path)


def _port(given: str) -> int:
    return _number(given, 0, 65535)


def _positive(given: str) -> int:
    return _number(given, 1, 256)


def _number(given: str, least: int, most: int) -> int:
    if not given.isdecimal() or not least <= int(given) <= most:
        raise argparse.ArgumentTypeError(f"{given} is not an integer from {least} to {most}")
    return int(given)
