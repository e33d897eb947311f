"""Holds IAM documents to AWS's own reference and to good practice, offline, with a linter from the registry."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from iam_validator.core.aws_service import AWSServiceFetcher
from iam_validator.core.config.config_loader import ValidatorConfig
from iam_validator.core.models import IAMPolicy, PolicyValidationResult
from iam_validator.core.policy_checks import validate_policies  # pyright: ignore[reportUnknownVariableType] - bare dicts

from tests.support.iam_reference import write_reference
from tests.support.json_objects import obj, objects

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from holdfast.scheduling.json import Json

_CONFIGURATION = ValidatorConfig(
    {
        # It asks for a condition on every action of a long list, also where a statement names the one resource.
        "sensitive_action": {"enabled": False},
    }
)

#: Remarks that tell of something worth knowing and not of something wrong.
_REMARKS = {"info", "low", "none"}


@dataclass(frozen=True, order=True, kw_only=True)
class Finding:
    """What the linter has against a statement of a document."""

    document: str
    statement: str
    kind: str
    message: str


def lint(documents: Mapping[str, str], folder: Path) -> list[Finding]:
    """Lint documents, by name; AWS's reference is laid out in an empty folder."""
    parsed = {name: obj(json.loads(text)) for name, text in documents.items()}
    write_reference(folder, {service for document in parsed.values() for service in _services(document)})
    results = asyncio.run(_validate(parsed, folder))
    return sorted(
        Finding(
            document=result.policy_file,
            statement=issue.statement_sid or "",
            kind=issue.issue_type,
            message=issue.message,
        )
        for result in results
        for issue in result.issues
        if issue.severity not in _REMARKS
    )


async def _validate(documents: Mapping[str, Json], folder: Path) -> list[PolicyValidationResult]:
    policies = [(name, IAMPolicy.model_validate(one), dict(one)) for name, one in documents.items()]
    async with AWSServiceFetcher(
        aws_services_dir=folder, enable_cache=False, prefetch_common=False
    ) as fetcher:
        return await validate_policies(policies, config=_CONFIGURATION, fetcher=fetcher)


def _services(document: Json) -> Iterable[str]:
    for statement in objects(document["Statement"]):
        actions = statement["Action"]
        for action in [actions] if isinstance(actions, str) else objects(actions):
            yield str(action).partition(":")[0]
