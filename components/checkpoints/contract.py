"""What every store of checkpoints offers, whichever cloud it is on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from pulumi import Output


class CheckpointStore(Protocol):
    """A place for the checkpoints of every training namespace, each under a prefix of its own."""

    def uri(self, namespace: str) -> Output[str]:
        """The address under which a namespace keeps its checkpoints (`s3://…`, `gs://…`, `file:///…`)."""
        ...
