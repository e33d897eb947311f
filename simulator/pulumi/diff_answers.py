"""Differences, as the message the engine reads."""

from collections.abc import Collection, Sequence

from pulumi.runtime.proto import provider_pb2

from holdfast.simulator.pulumi.diffing import Change, ChangeKind

_PLAIN = {
    ChangeKind.ADD: provider_pb2.PropertyDiff.ADD,
    ChangeKind.DELETE: provider_pb2.PropertyDiff.DELETE,
    ChangeKind.UPDATE: provider_pb2.PropertyDiff.UPDATE,
}
_REPLACING = {
    ChangeKind.ADD: provider_pb2.PropertyDiff.ADD_REPLACE,
    ChangeKind.DELETE: provider_pb2.PropertyDiff.DELETE_REPLACE,
    ChangeKind.UPDATE: provider_pb2.PropertyDiff.UPDATE_REPLACE,
}


def diff_response(
    found: Sequence[Change], *, replacing: Collection[Change] = (), deletes_first: bool = False
) -> provider_pb2.DiffResponse:
    """Return changes as the engine reads them; `replacing` are those that replace the resource."""
    detailed = {
        one.path: provider_pb2.PropertyDiff(
            kind=(_REPLACING if one in replacing else _PLAIN)[one.kind], inputDiff=True
        )
        for one in found
    }
    return provider_pb2.DiffResponse(
        changes=provider_pb2.DiffResponse.DIFF_SOME if found else provider_pb2.DiffResponse.DIFF_NONE,
        diffs=list(dict.fromkeys(one.top for one in found)),
        replaces=[one.path for one in found if one in replacing],
        detailedDiff=detailed,
        hasDetailedDiff=True,
        deleteBeforeReplace=bool(replacing) and deletes_first,
    )
