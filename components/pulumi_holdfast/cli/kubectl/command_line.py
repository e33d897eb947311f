"""The options that all commands of the plugin share, and their errors."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.cli.kubectl.cluster import Cluster
from pulumi_holdfast.cli.kubectl.connection import Access, connected, find_target
from pulumi_holdfast.controller.kube.client import ApiError, Unreachable
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Generator

JOB_HELP: Final = "a job: jobset/NAME, rayjob/NAME, or NAME"


def add_access(parser: argparse.ArgumentParser) -> None:
    """Add the options of kubectl that choose a cluster, a namespace and a user."""
    parser.add_argument("-n", "--namespace", help="the namespace (default: that of the kubeconfig's context)")
    parser.add_argument("--context", help="the context of the kubeconfig")
    parser.add_argument("--kubeconfig", metavar="FILE", help="the kubeconfig (default: as kubectl finds it)")
    parser.add_argument("--as", dest="as_user", metavar="USER", help="the user to impersonate")


def access_of(parsed: argparse.Namespace) -> Access:
    """Return what the options choose."""
    return Access(
        kubeconfig=parsed.kubeconfig, context=parsed.context, namespace=parsed.namespace, user=parsed.as_user
    )


@contextmanager
def open_cluster(access: Access) -> Generator[Cluster]:
    """Open the namespace for the length of the block; any failure is a ConfigError with the fix."""
    with errors_for_the_user():
        target = find_target(access)
        with connected(access) as requests:
            yield Cluster(requests, target.namespace)


@contextmanager
def errors_for_the_user() -> Generator[None]:
    """Convert rejections of the API server, and its timeouts, to a ConfigError."""
    try:
        yield
    except ApiError as error:
        raise ConfigError([_rejected(error)]) from error
    except Unreachable as error:
        raise ConfigError.of(
            field="API server",
            value=f"no answer ({error})",
            allowed="a cluster that answers, and credentials that are valid",
            fix="Try `kubectl get pods`: the plugin reaches the cluster as kubectl does.",
        ) from error


def _rejected(error: ApiError) -> Problem:
    return Problem(
        field="request",
        value=f"{error.status} {error.reason} ({error.message})",
        allowed="what the API server accepts",
        fix="Follow the message, and run the command again.",
    )
