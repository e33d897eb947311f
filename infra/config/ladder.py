"""The sections on the fallback controller: the controller itself, and how a namespace's jobs walk their ladder."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field

from holdfast.infra.config.base import Section
from holdfast.infra.config.fields import Duration, error_with_fix
from holdfast.scheduling.ladder import MOST_FAILURES, UNLIMITED, Failures
from holdfast.scheduling.quantities import DURATION_ALLOWED as DURATION_ALLOWED

#: A host, a path, and a tag, a digest or both: what a container runtime takes without guessing.
_IMAGE: Final = re.compile(
    r"(?=[^/]*[.:])[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
    r"(?=[:@])(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def _image(text: str) -> str:
    if _IMAGE.fullmatch(text) is None:
        raise error_with_fix(
            "Write the registry's host, the path and a tag: ghcr.io/holdfast-dev/fallback-controller:0.1.0."
        )
    return text


ImageReference = Annotated[str, Field(max_length=512), AfterValidator(_image)]


class ControllerSection(Section):
    """The fallback controller of a stack."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Write image, with the version as its tag.",
        "returnAfter": "Write it under a namespace's fallback: each team chooses for its jobs.",
        "failures": "Write it under a namespace's fallback: each team chooses for its jobs.",
    }

    image: ImageReference | None = Field(
        default=None,
        description="an image with its registry, and its tag or digest",
        examples=["ghcr.io/holdfast-dev/fallback-controller:0.1.0"],
    )


class FallbackSection(Section):
    """How the jobs of a training namespace walk their ladder; what is left out is the controller's to choose."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxFailures": "Write it on each tier of the ladder.",
        "procurementTimeout": "Write it on each tier of the ladder.",
        "image": "Write it under fallback beside pools and namespaces: a stack has one controller.",
    }

    failures: Failures | None = Field(
        default=None, description="any or evictions: what counts towards maxFailures", examples=["any"]
    )
    outage_window: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["5m"])
    give_up_after: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["24h"])
    application_failures: int | None = Field(
        default=None,
        ge=UNLIMITED,
        le=MOST_FAILURES,
        description=f"a whole number of failures: 0 to {MOST_FAILURES}, or -1 for any number",
        examples=["5"],
    )
    return_after: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["4h"])
    hold_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["10m"])
    start_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["30m"])
    deadline: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["48h"])
