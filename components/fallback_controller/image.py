"""The controller's images. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.components.operators.pod_settings import image


@dataclass(frozen=True, kw_only=True)
class ControllerImages:
    """What is pulled: the controller, and what its placeholders run, which is nothing. Both with registry and tag."""

    controller: str
    placeholder: str


def controller_images(
    version: str, pause_version: str, mirror: str | None, *, own: str | None = None
) -> ControllerImages:
    """Return the images of these versions, from the registry `mirror`; None: upstream's.

    `own` is a controller's image that is taken as it is.
    """
    controller = f"{image(mirror, 'ghcr.io/holdfast-dev/fallback-controller')}:{version}"
    return ControllerImages(
        controller=own or controller,
        placeholder=f"{image(mirror, 'registry.k8s.io/pause')}:{pause_version}",
    )
