"""The rule that checkpoints are private, encrypted, kept when overwritten, and never expire while they are the latest.

Buckets are taken for checkpoints by their names: those with `checkpoint` in them, or in the setting `buckets`.
"""

from __future__ import annotations

from fnmatch import fnmatch
from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import text_at
from holdfast.policies.rule import names
from holdfast.policies.rules.blob_checkpoints import blob_problems, is_storage_account
from holdfast.policies.rules.gcs_checkpoints import gcs_problems, is_gcs_bucket
from holdfast.policies.rules.s3_checkpoints import is_s3_bucket, s3_problems

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.rule import Settings

BUCKETS: Final = "buckets"
PROTECTED: Final = "protectedStacks"

_KINDS: Final[Mapping[str, tuple[Callable[[str], bool], Callable[..., Iterator[str]]]]] = {
    "S3 bucket": (is_s3_bucket, s3_problems),
    "GCS bucket": (is_gcs_bucket, gcs_problems),
    "storage account": (is_storage_account, blob_problems),
}
_PHYSICAL: Final = ("bucket", "name", "accountName")


def find(resources: Sequence[StackResource], settings: Settings) -> tuple[Finding, ...]:
    """Return what is wrong with the places where checkpoints are kept."""
    named, protected = names(settings, BUCKETS), names(settings, PROTECTED)
    found: list[Finding] = []
    for resource in resources:
        for kind, (is_one, problems) in _KINDS.items():
            if is_one(resource.type) and _holds_checkpoints(resource, named):
                told = (*problems(resource, resources), *_unprotected(resource, protected))
                found.extend(
                    Finding(
                        urn=resource.urn,
                        message=f"{kind} {resource.logical_name!r}, which holds checkpoints, {each}",
                    )
                    for each in told
                )
    return tuple(found)


def _holds_checkpoints(resource: StackResource, named: frozenset[str]) -> bool:
    known = {resource.logical_name, *(text_at(resource.props, key) for key in _PHYSICAL)}
    texts = {each for each in known if isinstance(each, str)}
    return bool(texts & named) or any("checkpoint" in each.lower() for each in texts)


def _unprotected(resource: StackResource, protected: frozenset[str]) -> Iterator[str]:
    if not resource.is_protected and any(fnmatch(resource.stack, each) for each in protected):
        yield "can be deleted with its stack, which is a protected one. Make it with the option `protect`."
