"""What can go wrong between us and an API server."""

# ruff: noqa: N818 - a name that says what is wrong needs no "Error" behind it

from typing import TYPE_CHECKING

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_client.summary import summarise

if TYPE_CHECKING:
    from holdfast.scheduling.json import Json


class KubeError(RehearsalError):
    """The API server refused a request: its status code, its reason and its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message or f"the API server answered {status} {reason}")
        self.status = status
        self.reason = reason
        self.message = message

    @property
    def is_page_not_found(self) -> bool:
        """Whether nobody serves the path at all, as against: the object in it is missing."""
        return self.status == 404 and self.message == "404 page not found"


class NoSuchKind(KubeError):
    """The API server serves no such kind: its CRD is missing, or not served yet."""

    def __init__(self, api_version: str, kind: str) -> None:
        super().__init__(404, "NoMatch", f"the API server serves no kind {kind} in {api_version}")
        self.api_version = api_version
        self.kind = kind


class KubeUnreachable(RehearsalError):
    """Nothing answers where the API server should be."""

    def __init__(self, server: str, cause: str) -> None:
        super().__init__(f"the API server at {server} does not answer ({cause})")
        self.server = server


class KubeCancelled(RehearsalError):
    """A wait was ended because the run was cancelled or its client closed."""

    def __init__(self) -> None:
        super().__init__("cancelled")


class KubeTimeout(RehearsalError):
    """A condition did not come about in time."""

    def __init__(self, what: str, seconds: float, last: "Json | None") -> None:
        super().__init__(f"{what}: not so after {seconds:.0f} s; last seen: {summarise(last)}")
        self.what = what
        self.seconds = seconds
        self.last = last
