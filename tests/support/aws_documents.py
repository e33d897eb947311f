"""A valid AWS stack's document to start from: a test overrides the one thing it is about."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, cast

from holdfast.infra.aws.config.validation import read_aws_platform
from holdfast.scheduling.errors import ConfigError
from tests.support.builders.configurations import NAMESPACES

if TYPE_CHECKING:
    from collections.abc import Callable

    from holdfast.infra.aws.config.stack import AwsPlatform
    from holdfast.scheduling.errors import Problem
    from tests.support.builders.configurations import Document

REGION = "us-west-2"

_PLATFORM: Document = {
    "cloud": "aws",
    "account": "123456789012",
    "cluster": {
        "publicAccessCidrs": ["203.0.113.0/24"],
        "admins": ["arn:aws:iam::123456789012:role/platform"],
    },
    "network": {"cidr": "10.40.0.0/16", "zones": ["us-west-2a", "us-west-2b", "us-west-2c"]},
    "pools": [
        {
            "name": "cpu",
            "capacity": "on-demand",
            "instanceTypes": ["m7i.xlarge", "m7a.xlarge"],
            "maxNodes": 20,
            "default": True,
        },
        {
            "name": "cpu-spot",
            "capacity": "spot",
            "families": ["c7i", "c6i"],
            "sizes": ["xlarge"],
            "maxNodes": 8,
        },
        {
            "name": "a100-spot",
            "capacity": "spot",
            "instanceTypes": ["p4d.24xlarge", "p4de.24xlarge"],
            "maxNodes": 8,
        },
        {"name": "a100", "capacity": "on-demand", "instanceTypes": ["p4d.24xlarge"], "maxNodes": 4},
    ],
    "namespaces": NAMESPACES,
}


def aws_document(change: Callable[[Document], object] = lambda _: None) -> Document:
    """An AWS stack's document as it is written, after one change to it."""
    document = deepcopy(_PLATFORM)
    change(document)
    return document


def section(document: Document, name: str) -> Document:
    """A mapping of a document, made where it is not there."""
    return cast("Document", document.setdefault(name, {}))


def read_aws(document: Document, region: str | None = REGION) -> AwsPlatform:
    """Parse a document as the program does."""
    return read_aws_platform(document, region)


def aws_platform(change: Callable[[Document], object] = lambda _: None, region: str = REGION) -> AwsPlatform:
    """A valid AWS stack's platform, after one change to its document."""
    return read_aws(aws_document(change), region)


def aws_problems(document: Document, region: str | None = REGION) -> tuple[Problem, ...]:
    """What is wrong with a document."""
    try:
        read_aws(document, region)
    except ConfigError as error:
        return error.problems
    return ()
