"""The fields that the document of every cloud's stack has."""

from pydantic import Field

from holdfast.infra.config.addresses import ImageSource
from holdfast.infra.config.fallback import ControllerSection
from holdfast.infra.config.fields import ChartSource
from holdfast.infra.config.platform import NamespaceSection
from holdfast.infra.config.section import Section


class CloudMirror(Section):
    """Where charts and images are taken from, where not from their upstreams."""

    charts: ChartSource | None = Field(
        default=None,
        description="a directory, or an address that starts with oci:// or https://",
        examples=["oci://registry.example.com/charts"],
    )
    images: ImageSource | None = Field(
        default=None,
        description="a registry's host and, behind a slash, the path of its images",
        examples=["registry.example.com/mirror"],
    )


class CloudDocument(Section):
    """What stands under holdfast:platform on any cloud."""

    protected: bool = Field(
        default=True,
        description="true to keep the cluster and the checkpoints from being destroyed, false to let them go",
        examples=["false"],
    )
    mirror: CloudMirror = Field(
        default_factory=CloudMirror,
        description="a mapping of charts and images",
        examples=["{images: registry.example.com/mirror}"],
    )
    fallback: ControllerSection = Field(
        default_factory=ControllerSection,
        description="a mapping of image, for the controller that moves jobs down and up their ladders",
        examples=["{image: registry.example.com/fallback-controller:0.1.0}"],
    )
    namespaces: tuple[NamespaceSection, ...] = Field(
        default=(),
        description="a list of training namespaces, each with its ladder",
        examples=["[{name: vision, ladder: [{pool: cpu}]}]"],
    )
