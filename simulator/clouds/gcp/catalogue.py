"""Google Cloud, put together."""

from collections.abc import Mapping

from holdfast.scheduling.json import JsonValue
from holdfast.simulator.clouds.catalogue import Catalogue, Making, Messages
from holdfast.simulator.clouds.gcp import gke, iam, network, node_pools, projects, storage
from holdfast.simulator.clouds.gcp.api_server import refuse_connection, where_from
from holdfast.simulator.clouds.gcp.names import project
from holdfast.simulator.clouds.gcp.nodes import NODE_POOL, machines_of


def _all_labels(making: Making) -> JsonValue:
    """Every label on the object: the provider's default ones, its own, and the mark of its manager."""
    labels: dict[str, JsonValue] = {"goog-pulumi-provisioned": "true"}
    for given in (making.configuration.get("defaultLabels"), making.inputs.get("labels")):
        if isinstance(given, Mapping):
            labels.update(given)
    return labels


CATALOGUE = Catalogue(
    resources={
        **gke.RESOURCES,
        **iam.RESOURCES,
        **network.RESOURCES,
        **node_pools.RESOURCES,
        **storage.RESOURCES,
    },
    invokes={**projects.INVOKES, **storage.INVOKES},
    common={"project": project, "effectiveLabels": _all_labels, "pulumiLabels": _all_labels},
    scopes=frozenset({"project", "location", "region", "zone", "cluster"}),
    fleets={NODE_POOL: machines_of},
    refuse_connection=refuse_connection,
    remarks=where_from,
    messages=Messages(
        taken="googleapi: Error 409: The resource {type} '{name}' already exists, alreadyExists",
        missing="googleapi: Error 404: The resource {type} '{id}' was not found, notFound",
        throttled="googleapi: Error 429: Quota exceeded, rateLimitExceeded",
    ),
)
