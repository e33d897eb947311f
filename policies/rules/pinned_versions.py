"""Charts and images are pinned.

A version that is not pinned changes without a change of the program: an operator's new version restarts every job. A policy
sees the chart, version and values of a Helm release, but not the objects that are rendered from them: only the images in
its values are checked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from pulumi_holdfast.ladder.json import UNKNOWN
from pulumi_holdfast.program.resources import StackResource, Value, at, is_list, is_object, text_at
from pulumi_holdfast.program.settings import Settings
from rule import Finding, Group, Level, Rule, RuleSeverity
from rules.disruption import pod_templates
from rules.interruption_queue import RELEASES

_EXACT: Final = re.compile(r"v?[0-9]+\.[0-9]+(\.[0-9]+)?([-+][0-9A-Za-z.+-]+)?")
_CONTAINERS: Final = ("containers", "initContainers")


def find(resources: Sequence[StackResource], _: Settings) -> tuple[Finding, ...]:
    """Return the charts without an exact version, and the images without a tag or a digest."""
    return tuple(
        Finding(urn=each.urn, message=f"{each.logical_name!r} {problem}")
        for each in resources
        if each.type.startswith("kubernetes:")
        for problem in (*_chart_problems(each), *_image_problems(each))
    )


def _chart_problems(release: StackResource) -> Iterator[str]:
    """Yield what is wrong with a release's version. A chart in a folder needs none."""
    chart, version = text_at(release.props, "chart"), text_at(release.props, "version")
    if release.type not in RELEASES or UNKNOWN in (chart, version) or _is_in_folder(release):
        return
    if version is None or not _EXACT.fullmatch(str(version)):
        given = "no version" if version is None else f"version {version!r}, which is a range"
        yield f"installs chart {chart!r} with {given}. Set the exact version."


def _image_problems(resource: StackResource) -> Iterator[str]:
    """Yield what is wrong with the images of pods, and with the image tags in the values of a chart."""
    for template in pod_templates(dict(resource.props)):
        for kind in _CONTAINERS:
            containers = at(template, "spec", kind)
            for container in containers if is_list(containers) else ():
                image = text_at(container, "image")
                if isinstance(image, str) and not _is_pinned(image):
                    yield f"runs image {image!r}, which is not pinned. Set a tag other than `latest`, or a digest."
    for where, tag in _tags(at(resource.props, "values") if resource.type in RELEASES else None):
        if tag == "latest":
            yield f"sets the image tag `latest` under `{where}`. Set the exact tag."


def _is_pinned(image: str) -> bool:
    """Return whether it has a digest, or a tag other than `latest`."""
    if "@sha256:" in image:
        return True
    _, colon, tag = image.rpartition("/")[2].partition(":")
    return bool(colon) and tag not in {"", "latest"}


def _is_in_folder(release: StackResource) -> bool:
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


RULE: Final = Rule(
    name="charts-and-images-pinned",
    title="Charts and images are pinned",
    description="Helm releases have exact versions, and pods images that do not change. Of a release, the chart, its version "
    "and its values are checked, not the objects that are rendered from them.",
    fix="Set the exact version, tag or digest.",
    group=Group.PLATFORM,
    level=Level.ADVISORY,
    strict=Level.MANDATORY,
    severity=RuleSeverity.MEDIUM,
    find=find,
)
