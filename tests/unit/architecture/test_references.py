"""Every image and chart of every stack is a published one, and it is recorded where its digest was read."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import cast

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.program.resources import StackResource
from tests.support.builders.official_karpenter import official
from tests.support.builders.policy_programs import STACKS, program
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj, objects

DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
#: The image of a container; one from the pull-through cache of an account is the cached one.
IMAGE = re.compile(
    r'(?m)^ *(?:- )?image: "?(?:\d{12}\.dkr\.ecr\.[\w-]+\.amazonaws\.com/docker-hub/)?([^\s"]+)'
)
RELEASE, DEPLOYMENT = ":Release", ":Deployment"


@cache
def table() -> Json:
    return json.loads((ROOT / "tools" / "references.json").read_text("utf-8"))


def charts_of(stack: str) -> Iterator[tuple[str, str | None, str]]:
    """The published charts of a stack: name, repository and version; a directory's are this repository's own."""
    for release in (each for each in program(stack) if each.type.endswith(RELEASE)):
        chart, repository = str(release.props["chart"]), obj(release.props.get("repositoryOpts")).get("repo")
        if repository is not None or "://" in chart:
            yield chart, None if repository is None else str(repository), str(release.props["version"])


def images_of(stack: str) -> Iterator[tuple[str, str | None, str | None]]:
    """The images that a stack names: repository, tag and digest; None where the chart decides."""
    for resource in program(stack):
        if resource.type.endswith(RELEASE) and "kwok" not in str(resource.props["chart"]):
            for values in images_in(resource.props.get("values")):
                tag, _, digest = str(values.get("tag") or "").partition("@")
                yield str(values["repository"]), tag or None, digest or text_of(values.get("digest"))
        elif resource.type.endswith(DEPLOYMENT):
            yield from map(parts_of, pod_images(resource))


def text_of(value: object) -> str | None:
    return str(value) if value else None


def images_in(values: object) -> Iterator[Json]:
    if not isinstance(values, Mapping):
        return
    found = cast("Json", values)
    if "repository" in found:
        yield found
    for inner in found.values():
        yield from images_in(inner)


def pod_images(deployment: StackResource) -> Iterator[str]:
    pod = obj(obj(obj(deployment.props["spec"])["template"])["spec"])
    for container in objects(pod["containers"]):
        yield str(container["image"])
        arguments = [str(argument) for argument in objects(container["args"])]
        yield from (argument.partition("=")[2] for argument in arguments if "-image=" in argument)


def parts_of(image: str) -> tuple[str, str | None, str | None]:
    name, _, digest = image.partition("@")
    repository, _, tag = name.rpartition(":")
    return repository, tag, digest or None


@pytest.mark.parametrize("stack", STACKS)
def test_every_chart_of_a_stack_is_in_the_table(stack: str) -> None:
    known = {(row["chart"], row.get("repository"), row["version"]) for row in objects(table()["charts"])}
    assert set(charts_of(stack)) <= known


@pytest.mark.parametrize("stack", STACKS)
def test_every_image_of_a_stack_is_in_the_table(stack: str) -> None:
    rows = {str(row["image"]): row for row in objects(table()["images"])}
    for repository, tag, digest in images_of(stack):
        assert repository in rows, f"{repository}: record in tools/references.json where its digest was read"
        row = rows[repository]
        assert tag in (None, row["tag"]), f"{repository}:{tag} is another release than the recorded one"
        assert digest in (None, row["digest"]), f"{repository}:{tag} is pinned to a digest of something else"


def test_every_row_says_where_it_was_read_and_pinned_digests_come_from_two_sources() -> None:
    used = {chart for stack in STACKS for chart, _, _ in charts_of(stack)}
    used |= {image for stack in STACKS for image, _, _ in images_of(stack)}
    pinned = {image for stack in STACKS for image, _, digest in images_of(stack) if digest}
    for row in [*objects(table()["charts"]), *objects(table()["images"])]:
        name = str(row.get("image") or row["chart"])
        assert name in used, f"{name} is in no stack: remove it"
        assert objects(row["read"]), f"{name}: a digest without a source is a guess"
        assert row["digest"] is None or DIGEST.fullmatch(str(row["digest"])), f"{name}: a whole digest"
        if name in pinned:
            assert row["digest"], f"{name} is pinned by digest"
            assert len(objects(row["read"])) >= 2, f"{name}: two sources agree on what nodes run"


def test_every_image_of_an_example_or_guide_is_in_the_table_and_no_other() -> None:
    files = [*(ROOT / "examples").rglob("*.yaml"), *(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]
    named = {image for file in files for image in IMAGE.findall(file.read_text("utf-8"))}
    assert {image for image in named if ".example.com/" not in image} == {
        str(row["image"]) for row in objects(table()["examples"])
    }
    assert all(objects(row["read"]) for row in objects(table()["examples"]))


def test_karpenters_chart_and_image_have_one_version_and_the_fixture_its_digest() -> None:
    (chart,) = [row for row in objects(table()["charts"]) if str(row["chart"]).endswith("/karpenter")]
    (image,) = [row for row in objects(table()["images"]) if "karpenter" in str(row["image"])]
    assert chart["version"] == image["tag"] == versions.KARPENTER
    assert image["digest"] == versions.KARPENTER_IMAGE_DIGEST == official("release")["digest"]


@pytest.mark.parametrize("folder", ["components", "infra", "stacks", "fallback", "examples", "docs"])
def test_no_default_names_an_organization_that_is_not_there(folder: str) -> None:
    """`example.com` is reserved for documentation; an organization of ours exists in no registry."""
    named = [
        f"{file.relative_to(ROOT)}: {found}"
        for file in (ROOT / folder).rglob("*")
        if file.suffix in {".py", ".yaml", ".json", ".md"}
        for found in re.findall(
            r"(?:ghcr\.io|docker\.io|quay\.io|github\.com)/holdfast[\w-]*", file.read_text("utf-8")
        )
    ]
    assert not named, "an owner of that name would run code in the clusters of users"
