"""The sections on fallback: the controller, and how the jobs of a namespace move along their ladder."""

import re
from collections.abc import Mapping
from typing import Annotated, ClassVar, Final

from pydantic import AfterValidator, Field

from pulumi_holdfast.config.base import Section
from pulumi_holdfast.config.fields import NAME_ALLOWED, DnsLabel, Duration, DurationOrNever, error_with_fix
from pulumi_holdfast.ladder.ladder import MOST_FAILURES, UNLIMITED, Failures
from pulumi_holdfast.ladder.quantities import DURATION_ALLOWED as DURATION_ALLOWED

#: A host, a path, and a tag, a digest or both: a complete reference for a container runtime.
_IMAGE: Final = re.compile(
    r"(?=[^/]*[.:])[a-z0-9]([-a-z0-9.]*[a-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+"
    r"(?=[:@])(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?",
    re.ASCII,
)


def _image(text: str) -> str:
    if _IMAGE.fullmatch(text) is None:
        raise error_with_fix(
            "Write the registry's host, the path and a tag, such as registry.example.com/fallback-controller:0.1.0."
        )
    return text


ImageReference = Annotated[str, Field(max_length=512), AfterValidator(_image)]


class MonitoringSection(Section):
    """The monitoring of the fallback controller."""

    fixes: ClassVar[Mapping[str, str]] = {"labels": "Write release, the value of the label release."}

    dashboard: bool = Field(
        default=False,
        description="true for a ConfigMap with a Grafana dashboard, false for none",
        examples=["true"],
    )
    alerts: bool = Field(
        default=False,
        description="true for a PrometheusRule and a ServiceMonitor, false for none",
        examples=["true"],
    )
    release: DnsLabel | None = Field(
        default=None, description=NAME_ALLOWED, examples=["kube-prometheus-stack"]
    )


class ControllerSection(Section):
    """The fallback controller of a stack."""

    fixes: ClassVar[Mapping[str, str]] = {
        "version": "Write image, with the version as its tag.",
        "returnAfter": "Move it to a namespace's fallback section: each team chooses for its jobs.",
        "failures": "Move it to a namespace's fallback section: each team chooses for its jobs.",
    }

    image: ImageReference | None = Field(
        default=None,
        description="an image with its registry, and its tag or digest",
        examples=["registry.example.com/fallback-controller:0.1.0"],
    )
    monitoring: MonitoringSection = Field(
        default_factory=MonitoringSection,
        description="a mapping of dashboard, alerts and release",
        examples=["{dashboard: true, alerts: true}"],
    )
    webhook_secret: DnsLabel | None = Field(
        default=None, description=NAME_ALLOWED, examples=["holdfast-webhook"]
    )


class FallbackSection(Section):
    """How the jobs of a training namespace move along their ladder; the controller has defaults for missing fields."""

    fixes: ClassVar[Mapping[str, str]] = {
        "maxFailures": "Write it on each tier of the ladder.",
        "procurementTimeout": "Write it on each tier of the ladder.",
        "image": "Move it to the stack's fallback section: a stack has one controller.",
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
    failure_window: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["24h"])
    return_after: DurationOrNever | None = Field(
        default=None, description=f"{DURATION_ALLOWED}; or never", examples=["1h"]
    )
    hold_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["10m"])
    start_timeout: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["30m"])
    deadline: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["48h"])
    restart_cost: Duration | None = Field(default=None, description=DURATION_ALLOWED, examples=["12m"])
