"""A valid GCP stack's document to start from: a test overrides the one thing it is about."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING

from holdfast.infra.gcp.config.validation import read_gcp_platform
from holdfast.scheduling.errors import ConfigError
from tests.support.builders.configurations import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.infra.gcp.config.stack import GcpPlatform
    from holdfast.scheduling.errors import Problem
    from tests.support.builders.configurations import Document

PROJECT = "my-project"
REGION = "us-central1"
KEY = f"projects/{PROJECT}/locations/{REGION}/keyRings/holdfast/cryptoKeys/all"

_PLATFORM: Document = {
    "cloud": "gcp",
    "cluster": {
        "access": {"authorizedNetworks": ["203.0.113.0/24"]},
        "zones": ["us-central1-a", "us-central1-b", "us-central1-c"],
        "maintenance": {"exclusion": {"start": "2026-12-01", "end": "2027-06-30"}},
    },
    "network": {"nodesCidr": "10.40.0.0/20", "podsCidr": "10.44.0.0/14", "servicesCidr": "10.40.16.0/20"},
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "machineType": "n2-standard-4",
            "maxNodes": 20,
            "default": True,
        },
        {"name": "cpu-spot", "capacity": "spot", "machineType": "n2-standard-16", "maxNodes": 8},
        {
            "name": "a100-spot",
            "capacity": "spot",
            "machineType": "a2-highgpu-8g",
            "zones": ["us-central1-a", "us-central1-c"],
            "maxNodes": 8,
        },
        {"name": "a100", "capacity": "on-demand", "machineType": "a2-highgpu-8g", "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def gcp_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """A GCP stack's document as it is written, after one change to it."""
    document = deepcopy(_PLATFORM)
    change(document)
    return document


def read_gcp(document: Document, region: str | None = REGION, project: str | None = PROJECT) -> GcpPlatform:
    """Parse a document as the program does."""
    return read_gcp_platform(document, project=project, region=region)


def gcp_platform(change: Callable[[Document], object] = lambda _: None, region: str = REGION) -> GcpPlatform:
    """A valid GCP stack's platform, after one change to its document."""
    return read_gcp(gcp_document(change), region)


def gcp_problems(
    document: Document, region: str | None = REGION, project: str | None = PROJECT
) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_gcp(document, region, project)
    except ConfigError as error:
        return error.problems
    return ()
