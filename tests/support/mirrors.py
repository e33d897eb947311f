"""Where a stack's charts and images come from, with a mirror of its own and without."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from pulumi_holdfast.ladder.json import JsonValue
from tests.support.fakes.pulumi_engine import Recorded
from tests.support.inputs import text, value


def assert_charts_come_from(charts: str, releases: Iterable[Recorded]) -> None:
    """Hold every release's chart to a registry, or to this repository."""
    for release in releases:
        chart = text(release, "chart")
        assert value(release, "repositoryOpts", "repo") is None, f"{release.name} asks a chart repository"
        assert chart.startswith(f"{charts}/") or "/kubernetes/charts/" in chart, (
            f"{release.name} is neither in the mirror nor a part of this repository"
        )


def assert_images_come_from(images: str, releases: Iterable[Recorded]) -> None:
    """Hold every image that a release names to a registry."""
    for release in releases:
        repositories = list(_image_repositories(release.inputs))
        assert repositories or release.name.endswith("-crds"), f"{release.name} takes its chart's own image"
        for repository in repositories:
            assert repository.startswith(f"{images}/"), f"{release.name} would pull {repository}"


def assert_unmirrored(releases: Iterable[Recorded]) -> None:
    """Hold every release to no mirror at all."""
    for release in releases:
        assert "mirror" not in text(release, "chart"), "there is none"
        assert all("mirror" not in found for found in _image_repositories(release.inputs)), "there is none"


def _image_repositories(tree: JsonValue) -> Iterator[str]:
    """Every repository that a chart's values name."""
    if isinstance(tree, Mapping):
        for key, child in tree.items():
            if key == "repository" and isinstance(child, str):
                yield child
            yield from _image_repositories(child)
    elif isinstance(tree, Sequence) and not isinstance(tree, str):
        for child in tree:
            yield from _image_repositories(child)
