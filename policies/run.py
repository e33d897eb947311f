"""What one run of the engine shows the pack: first each resource as it is asked for, at the end all as they will be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policies.pulumi_values import known_props, stack_resources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pulumi_policy import PolicyResource, ReportViolation, ResourceValidationArgs

    from policies.findings import StackResource
    from policies.known_values import Value


class Run:
    """The resources of the run that is under way.

    Before there is a cluster the engine does not ask its provider what an object will be, and shows the end of the run
    an object without properties: what it was asked to be is all that is known of it. So that is remembered as each
    resource comes by, and stands in for what is missing.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Mapping[str, Value]] = {}
        self._seen: tuple[StackResource, ...] = ()
        self._last = -1

    def remember(self, args: ResourceValidationArgs, _: ReportViolation) -> None:
        """Keep what a resource is asked to be."""
        self._asked[args.urn] = known_props(args.props)

    def resources(self, place: int, shown: Sequence[PolicyResource]) -> tuple[StackResource, ...]:
        """All resources, for the rule at this place in the pack.

        They are read once for all rules: with 5,000 resources it takes longer than the rules do. The engine shows them
        to one rule after the other, so one that comes before the last begins a new round.
        """
        if place <= self._last or not self._seen:
            self._seen = stack_resources(shown, self._asked)
        self._last = place
        return self._seen
