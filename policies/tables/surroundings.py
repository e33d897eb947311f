"""Rules on what training relies on: checkpoints, identities, API servers, versions, quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from holdfast.policies.rule import NAMES_SCHEMA, Level, Rule, Setting, Weight
from holdfast.policies.rules import (
    checkpoint_buckets,
    job_identities,
    open_endpoints,
    pinned_versions,
    quotas,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

SURROUNDINGS: Final[Sequence[Rule]] = (
    Rule(
        name="checkpoints-are-safe",
        title="Checkpoints are private, kept and protected",
        description="Stores of checkpoints are private and encrypted, keep what was overwritten, never expire what is "
        "current, and cannot be deleted in protected stacks.",
        fix="Mend what the message names.",
        level=Level.MANDATORY,
        weight=Weight.CRITICAL,
        find=checkpoint_buckets.find,
        settings={
            checkpoint_buckets.BUCKETS: Setting(
                schema={
                    **NAMES_SCHEMA,
                    "description": "Stores that hold checkpoints without `checkpoint` in their names.",
                },
                default=[],
            ),
            checkpoint_buckets.PROTECTED: Setting(
                schema={
                    **NAMES_SCHEMA,
                    "description": "Patterns of the names of stacks whose stores must be protected.",
                },
                default=["prod", "*-prod", "production", "*-production"],
            ),
        },
    ),
    Rule(
        name="job-identities-reach-one-prefix",
        title="Identities of jobs reach one prefix",
        description="No identity may read or write the checkpoints of every namespace.",
        fix="Grant the namespace's own prefix, folder or container.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=job_identities.find,
    ),
    Rule(
        name="api-endpoints-are-closed",
        title="API servers are not open to the world",
        description="A cluster's API server is private, or named ranges alone may call it.",
        fix="Name the ranges, or keep it private.",
        level=Level.MANDATORY,
        weight=Weight.HIGH,
        find=open_endpoints.find,
    ),
    Rule(
        name="charts-and-images-are-pinned",
        title="Charts and images are pinned",
        description="Helm releases have exact versions, and pods images that do not change. Of a release the chart, its "
        "version and its values are seen, never the objects made of them.",
        fix="Give the exact version, tag or digest.",
        level=Level.MANDATORY,
        weight=Weight.MEDIUM,
        find=pinned_versions.find,
    ),
    Rule(
        name="training-namespaces-set-quotas",
        title="Training namespaces set quotas",
        description="A training namespace has a ResourceQuota of GPUs, CPUs or pods, with room for the gang of every shape "
        "that the namespace declares.",
        fix="Add one with `requests.nvidia.com/gpu` or `pods`, as large as the largest gang or larger.",
        level=Level.ADVISORY,
        weight=Weight.LOW,
        find=quotas.find,
    ),
)
