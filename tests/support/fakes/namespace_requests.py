"""An API server with the objects of one namespace in memory: merge patches, deletions, access reviews, and what was sent."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from pulumi_holdfast.cli.kubectl.connection import Answer
from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.ladder.json import Json, JsonValue, mapping


@dataclass(kw_only=True)
class NamespaceRequests:
    """`objects` by path. `after` is called with this server after each write, as a controller would react.

    `granted`: whether access reviews are allowed. `refused`: the error that a write fails with, by its method and path. `conflicts`: how many patches under a resource version are rejected first. `sent`: method and path of each write, in order.
    """

    objects: dict[str, Json]
    after: Callable[[NamespaceRequests], None] = lambda _: None
    granted: Callable[[Json], bool] = lambda _: True
    refused: Callable[[str, str], Exception | None] = lambda _method, _path: None
    conflicts: int = 0
    sent: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: Json | None = None,
        content_type: str = "application/json",
    ) -> Answer:
        """Answer a request as an API server does."""
        del query, content_type
        if path.endswith("/selfsubjectaccessreviews"):
            asked = mapping(mapping(mapping(body).get("spec")).get("resourceAttributes"))
            return Answer(document={"status": {"allowed": self.granted(asked)}})
        if method == "GET":
            return Answer(document=self._read(path))
        if self.conflicts and mapping(mapping(body).get("metadata")).get("resourceVersion"):
            self.conflicts -= 1
            raise ApiError(409, "Conflict", "the object has been modified")
        if (error := self.refused(method, path)) is not None:
            raise error
        self.sent.append((method, path))
        if method == "PATCH":
            self.objects[path] = merged(self._read(path), mapping(body))
        elif method == "DELETE":
            del self.objects[path]
        self.after(self)
        return Answer(document=self.objects.get(path, {}))

    def _read(self, path: str) -> Json:
        if path in self.objects:
            return self.objects[path]
        items = [each for name, each in self.objects.items() if name.rpartition("/")[0] == path]
        if items or path.rpartition("/")[2] in {
            "pods",
            "jobs",
            "events",
            "rayclusters",
            "nodeclaims",
            "jobsets",
        }:
            return {"items": items}
        raise ApiError(404, "NotFound", f"{path} not found")


def merged(old: Json, patch: Json) -> Json:
    """Return an object with a merge patch applied (RFC 7396)."""
    result: dict[str, JsonValue] = dict(old)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = merged(mapping(result.get(key)), mapping(value))
        else:
            result[key] = value
    return result
