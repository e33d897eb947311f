"""The section on how much of the pools a training namespace may take."""

from collections.abc import Mapping
from typing import ClassVar, Final

from pydantic import Field

from holdfast.infra.config.section import Section
from holdfast.scheduling.quotas import AskedQuota

_MOST: Final = 100_000

_OF_NONE: Final = (
    "Leave it out: a quota of it refuses every pod that does not say how much it takes. What the pools may have together "
    "is for their maxNodes."
)


class QuotaSection(Section):
    """What the pods of a training namespace may be together; what is left out is derived from its ladder's pools."""

    fixes: ClassVar[Mapping[str, str]] = {
        "cpu": _OF_NONE,
        "memory": _OF_NONE,
        "nvidia.com/gpu": "Write gpus.",
        "none": "Write enforced: false.",
        "enabled": "Write enforced.",
        "nodes": "Write gpus or pods, or maxNodes on the pools: a quota counts pods, not nodes.",
    }

    enforced: bool = Field(
        default=True,
        description="false to leave the namespace without quota, true to have one",
        examples=["false"],
    )
    gpus: int | None = Field(
        default=None, ge=0, le=_MOST, description=f"a whole number of GPUs, 0 to {_MOST}", examples=["64"]
    )
    pods: int | None = Field(
        default=None, ge=1, le=_MOST, description=f"a whole number of pods, 1 to {_MOST}", examples=["500"]
    )

    def as_asked(self) -> AskedQuota:
        """The quota as the rules know it."""
        return AskedQuota(enforced=self.enforced, gpus=self.gpus, pods=self.pods)
