"""What one run of the engine shows the pack: first each resource as it is asked for, at the end all as they will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.stack import Stack
from holdfast.policies.wire import stack_resources

if TYPE_CHECKING:
    from collections.abc import Iterable

    from google.protobuf.struct_pb2 import Struct
    from pulumi.runtime.proto.analyzer_pb2 import AnalyzerResource


class Run:
    """The resources of the run that is under way.

    Before there is a cluster the engine does not ask its provider what an object will be, and shows the end of the run
    an object without properties: what it was asked to be is all that is known of it. So that is remembered as each
    resource comes by, and stands in for what is missing.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Struct] = {}

    def remember(self, urn: str, asked: Struct) -> None:
        """Keep what a resource is asked to be, as it came: it is read only where it is needed."""
        self._asked[urn] = asked

    def stack(self, shown: Iterable[AnalyzerResource]) -> Stack:
        """Return all resources, as the engine shows them at the end."""
        return Stack(stack_resources(shown, self._asked))
