"""What the steps of a lifecycle must show: no changes, nothing left behind, and what protects a stack."""

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.ladder.labels import CONTROLLER
from pulumi_holdfast.rehearsal.api_server import NoSuchKind
from pulumi_holdfast.rehearsal.clouds.state import CloudObject
from pulumi_holdfast.rehearsal.engine import CommandOutcome
from pulumi_holdfast.rehearsal.engine.checkpoint import Checkpoint, RecordedResource
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.objects import identity

# A message names this many items; of the others it gives the number.
_NAMED = 5


def require_no_changes(command: str, outcome: CommandOutcome) -> None:
    """Raise RehearsalError if a command that had nothing to change made changes; the message names them."""
    if outcome.changed:
        changed = first_few([step.summary for step in outcome.steps])
        raise RehearsalError(f"{command} changed {changed}; give their inputs the same values in each run")


def require_nothing_left(left: Sequence[str]) -> None:
    """Raise RehearsalError if a destroyed stack left something behind."""
    if left:
        raise RehearsalError(f"the destroyed stack left {first_few(left)}")


def first_few(items: Sequence[str]) -> str:
    """Return the first items, and the number of the others."""
    more = f" and {len(items) - _NAMED} more" if len(items) > _NAMED else ""
    return f"{', '.join(items[:_NAMED])}{more}"


#: The admission policy on what the controller writes.
WRITE_POLICY: Final = f"{CONTROLLER}-writes"
_PLANTED: Final[Json] = {"metadata": {"labels": {"example.com/planted": "yes"}}}


def allowed_foreign_writes(controller: KubeClient, objects: Iterable[Json]) -> list[str]:
    """Label each object with the controller's token, which may patch it, and return those that WRITE_POLICY allowed.

    Raises RehearsalError if something else refuses a write: then it does not show what the policy does.
    """
    allowed: list[str] = []
    for each in objects:
        metadata = mapping(each.get("metadata"))
        namespace = metadata.get("namespace")
        where = namespace if isinstance(namespace, str) else None
        try:
            controller.merge_patch(
                str(each["apiVersion"]), str(each["kind"]), str(metadata["name"]), _PLANTED, namespace=where
            )
        except ApiError as error:
            if WRITE_POLICY not in str(error):
                raise RehearsalError(
                    f"not {WRITE_POLICY} refused the controller's write to {identity(each)}: {error}"
                ) from error
        else:
            allowed.append(identity(each))
    return allowed


# What would cost money after the destroy, or block the next stack of the same name.
_KINDS = (("v1", "Node"), ("karpenter.sh/v1", "NodeClaim"), ("karpenter.sh/v1", "NodePool"))
_RELEASES = "owner=helm"


def left_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return a line for each object of a stack that is left, except those whose URNs are in `kept`.

    Objects without a URN were made by the cloud itself; the stack does not own them.
    """
    return [f"{one.type} {one.id}" for one in objects if one.urn and one.urn not in kept]


def retained_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return the names of the retained objects that still exist."""
    return [one.urn.rsplit("::", 1)[-1] for one in objects if one.urn in kept]


def left_in_cluster(client: KubeClient) -> list[str]:
    """Return a line for each node, node claim, node pool and Helm release that is left on an API server."""
    found = [one for kind in _KINDS for one in _listed(client, *kind)]
    releases = client.list("v1", "Secret", label_selector=_RELEASES)
    return [*map(identity, found), *sorted({_release(each) for each in releases})]


def _listed(client: KubeClient, api_version: str, kind: str) -> list[Json]:
    try:
        return client.list(api_version, kind)
    except NoSuchKind:
        return []


def _release(secret: Json) -> str:
    metadata = mapping(secret.get("metadata"))
    return f"release {metadata.get('namespace')}/{mapping(metadata.get('labels')).get('name')}"


PLATFORM = "holdfast:platform"
FIELD = "protected"


def protected(checkpoint: Checkpoint) -> list[RecordedResource]:
    """Return the resources that the engine refuses to delete."""
    return [one for one in checkpoint.resources if one.protected]


def retained(checkpoint: Checkpoint) -> frozenset[str]:
    """Return the URNs of the resources with `retainOnDelete`."""
    return frozenset(one.urn for one in checkpoint.resources if one.retained)


def unprotected(settings: Json) -> Json:
    """Return a stack's settings with `protected: false`, which its owner sets before a destroy."""
    config = mapping(settings.get("config"))
    platform: Json = {**mapping(config.get(PLATFORM)), FIELD: False}
    return {**settings, "config": {**config, PLATFORM: platform}}


def names(resources: Iterable[RecordedResource]) -> list[str]:
    """Return the names of resources; components only if there is nothing else."""
    found = list(resources)
    made = [one for one in found if one.id and not one.type.startswith("pulumi:")] or found
    return [one.name for one in made]
