"""Google Cloud, put together."""

from collections.abc import Mapping

from rehearsal.providers.cloud.catalogue import Catalogue, Making, Messages
from scheduling.json import JsonValue

_PROJECT = "rehearsal"


def _project(making: Making) -> str:
    for values in (making.inputs, making.configuration):
        given = values.get("project")
        if isinstance(given, str) and given:
            return given
    return _PROJECT


def _all_labels(making: Making) -> JsonValue:
    """Every label on the object: the provider's default ones, its own, and the mark of its manager."""
    labels: dict[str, JsonValue] = {"goog-pulumi-provisioned": "true"}
    for given in (making.configuration.get("defaultLabels"), making.inputs.get("labels")):
        if isinstance(given, Mapping):
            labels.update(given)
    return labels


CATALOGUE = Catalogue(
    common={"project": _project, "effectiveLabels": _all_labels, "pulumiLabels": _all_labels},
    scopes=frozenset({"project", "location", "region", "zone", "cluster"}),
    messages=Messages(
        taken="googleapi: Error 409: The resource {type} '{name}' already exists, alreadyExists",
        missing="googleapi: Error 404: The resource {type} '{id}' was not found, notFound",
        throttled="googleapi: Error 429: Quota exceeded, rateLimitExceeded",
    ),
)
