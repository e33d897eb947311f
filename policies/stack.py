"""All resources of a stack, and what several rules work out from them."""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, TypeVar, cast

from holdfast.policies.findings import StackResource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

Found = TypeVar("Found")


class Stack(tuple[StackResource, ...]):
    """The resources of one run. What is worked out `once` from them is kept with them."""

    def __new__(cls, resources: Iterable[StackResource] = ()) -> Stack:
        """Keep the resources; nothing is found in them yet."""
        made = super().__new__(cls, resources)
        made._found = {}
        return made

    _found: dict[object, object]

    def once(self, work: Callable[[Sequence[StackResource]], Found]) -> Found:
        """Return what the work finds here, working it out the first time."""
        if work not in self._found:
            self._found[work] = work(self)
        return cast("Found", self._found[work])


def once(
    work: Callable[[Sequence[StackResource]], Found],
) -> Callable[[Sequence[StackResource]], Found]:
    """Mark what is the same for every rule: in a `Stack` it is worked out for the first of them alone.

    Seven rules ask which pools there are, and with 5,000 resources to read that was most of what they did.
    """

    @wraps(work)
    def remembered(resources: Sequence[StackResource]) -> Found:
        return resources.once(work) if isinstance(resources, Stack) else work(resources)

    return remembered
