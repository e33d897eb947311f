"""What a destroyed stack has left: in its clouds, and on its API server."""

from collections.abc import Collection, Iterable

from holdfast.scheduling.json import Json
from holdfast.simulator.clouds.state import CloudObject
from holdfast.simulator.kubernetes_client.client import KubeClient
from holdfast.simulator.kubernetes_client.errors import NoSuchKind
from holdfast.simulator.kubernetes_client.summary import identity, mapping

# What runs on after its stack and costs money, or stands in the way of the next one of its name.
_KINDS = (("v1", "Node"), ("karpenter.sh/v1", "NodeClaim"), ("karpenter.sh/v1", "NodePool"))
_RELEASES = "owner=helm"


def left_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return a line for each object of a stack that is left, those of the URNs in `kept` apart.

    What no program made, a cloud made of its own accord: it is not the stack's to remove.
    """
    return [f"{one.type} {one.id}" for one in objects if one.urn and one.urn not in kept]


def kept_in_clouds(objects: Iterable[CloudObject], kept: Collection[str]) -> list[str]:
    """Return the names of the objects that were kept on purpose, and are there."""
    return [one.urn.rsplit("::", 1)[-1] for one in objects if one.urn in kept]


def left_in_cluster(client: KubeClient) -> list[str]:
    """Return a line for each machine, pool and release that is left on an API server."""
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
