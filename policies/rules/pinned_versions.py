"""The rule that charts and images are pinned.

What is not pinned changes under a program that did not: an operator's new version restarts every job. Of a Helm release a
policy sees the chart, its version and its values, and never the objects that are made of them: their images are the
chart's own affair, and only what the values say of them is looked at.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from holdfast.policies.findings import Finding
from holdfast.policies.known_values import UNKNOWN, at, is_list, is_object, text_at
from holdfast.policies.rules.evictions import templates
from holdfast.policies.rules.interruption_queue import RELEASES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from holdfast.policies.findings import StackResource
    from holdfast.policies.known_values import Value
    from holdfast.policies.rule import Settings

_EXACT: Final = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?")
_CONTAINERS: Final = ("containers", "initContainers")


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the charts without an exact version, and the images without a tag or a digest."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}")
        for each in resources
        if each.type.startswith("kubernetes:")
        for problem in (*chart_problems(each), *image_problems(each))
    )


def chart_problems(release: StackResource) -> Iterator[str]:
    """Yield what is wrong with a release's version. A chart in a folder is as exact as the folder."""
    chart, version = text_at(release.props, "chart"), text_at(release.props, "version")
    if release.type not in RELEASES or UNKNOWN in (chart, version) or _is_in_a_folder(release):
        return
    if version is None or not _EXACT.fullmatch(str(version)):
        given = "no version" if version is None else f"version {version!r}, which is a range"
        yield f"installs chart {chart!r} with {given}. Give the exact one."


def image_problems(resource: StackResource) -> Iterator[str]:
    """Yield what is wrong with the images of pods, and with those that a chart is given."""
    for template in templates(dict(resource.props)):
        for kind in _CONTAINERS:
            containers = at(template, "spec", kind)
            for container in containers if is_list(containers) else ():
                image = text_at(container, "image")
                if isinstance(image, str) and not is_pinned(image):
                    yield f"runs image {image!r}, which changes under it. Give a tag other than `latest`, or a digest."
    for where, tag in _tags(at(resource.props, "values") if resource.type in RELEASES else None):
        if tag == "latest":
            yield f"gives its chart the tag `latest` under `{where}`. Give the exact one."


def is_pinned(image: str) -> bool:
    """Whether it names a digest, or a tag other than `latest`."""
    if "@sha256:" in image:
        return True
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return bool(colon) and tag not in {"", "latest"}


def _is_in_a_folder(release: StackResource) -> bool:
    chart = text_at(release.props, "chart")
    repo = text_at(release.props, "repositoryOpts", "repo")
    return repo is None and isinstance(chart, str) and "://" not in chart and chart.startswith((".", "/"))


def _tags(values: Value, where: str = "values") -> Iterator[tuple[str, Value]]:
    if not is_object(values):
        return
    for key, value in values.items():
        if key == "tag":
            yield f"{where}.tag", value
        yield from _tags(value, f"{where}.{key}")
