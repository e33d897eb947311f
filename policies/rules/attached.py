"""Resources that say something of another one: a bucket's versioning, its lifecycle."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, text_at

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.policies.findings import StackResource


def attached_to(
    owner: StackResource, resources: Sequence[StackResource], kinds: Sequence[str], key: str, *identities: str
) -> tuple[StackResource, ...]:
    """Those of the given types whose property `key` was made of the owner, or names one of its identities.

    On a preview the name is not known yet, but what it will be made of is.
    """
    known = {text_at(owner.props, identity) for identity in identities} - {None, UNKNOWN}
    return tuple(
        each
        for each in resources
        if each.type in kinds
        and (owner.urn in each.refers_to.get(key, ()) or text_at(each.props, key) in known)
    )
