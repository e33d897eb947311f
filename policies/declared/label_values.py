"""Labels as far as they are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.policies.known_values import UNKNOWN, Unknown, is_object

if TYPE_CHECKING:
    from collections.abc import Mapping

    from holdfast.policies.known_values import Value
    from holdfast.scheduling.reachability.facts import LabelValue


def label_values(declared: Value) -> Mapping[str, LabelValue] | Unknown:
    """The labels of a mapping; UNKNOWN where not even their keys are known."""
    if declared is UNKNOWN:
        return UNKNOWN
    if not is_object(declared):
        return {}
    return {key: value for key, value in declared.items() if isinstance(value, str) or value is UNKNOWN}
