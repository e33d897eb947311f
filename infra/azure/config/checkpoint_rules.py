"""The rules of an Azure stack's checkpoints: where their copies are, and what their containers are called."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from holdfast.components.checkpoints.blob_names import LENGTHS, is_container_name
from holdfast.infra.azure.config.locations import zones_here
from holdfast.infra.config.pools_and_ladders import NAMESPACES
from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from holdfast.infra.azure.config.stack import AzureCheckpoints


def checkpoint_problems(checkpoints: AzureCheckpoints, location: str | None, at: str) -> Iterator[Problem]:
    """Everything that is wrong with a storage account; `location` is None where it is not known."""
    if location is not None and checkpoints.redundancy == "Standard_ZRS" and not zones_here(location):
        yield Problem(
            field=f"{at}.redundancy",
            value=f"Standard_ZRS in {location}, which has no zones",
            allowed="Standard_LRS there",
            fix="Write `redundancy: Standard_LRS`.",
        )


def container_problems(namespaces: Mapping[int, str]) -> Iterator[Problem]:
    """Training namespaces whose checkpoints would need a container of a name that Blob Storage does not take."""
    fewest, most = LENGTHS
    for index, name in namespaces.items():
        if not is_container_name(name) and re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name):
            shorter = re.sub(r"-+", "-", name)[:most].strip("-")
            yield Problem(
                field=f"{NAMESPACES}[{index}].name",
                value=shown(name),
                allowed=f"{fewest} to {most} characters without two hyphens side by side: its checkpoints are in a "
                "container of this name",
                fix=f'Write another, such as "{shorter if len(shorter) >= fewest else f"{shorter}-training"}".',
            )
