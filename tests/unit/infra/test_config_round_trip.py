"""Valid configurations of local stacks parse, and survive a round trip."""

import json
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from pydantic import ValidationError

from holdfast.infra.config.ladder import ControllerSection
from holdfast.scheduling.json import Json, JsonValue
from holdfast.scheduling.ladder import UNLIMITED
from holdfast.scheduling.machines import machine_catalogue
from holdfast.scheduling.quantities import format_cpu, format_duration, format_memory
from tests.support.builders.configurations import Document, problems, read
from tests.support.strategies.any_json import any_json

CATALOGUE = machine_catalogue("local")
CPU_TYPES = sorted(name for name, machine in CATALOGUE.items() if not machine.gpus)
GPU_TYPES = sorted(name for name, machine in CATALOGUE.items() if machine.gpus)

names = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
durations = st.integers(1, 2_592_000).map(lambda seconds: format_duration(timedelta(seconds=seconds)))


def pools_of(types: list[str], capacity: str) -> SearchStrategy[Document]:
    return st.fixed_dictionaries(
        {
            "capacity": st.just(capacity),
            "instanceTypes": st.lists(st.sampled_from(types), min_size=1, max_size=4, unique=True),
            "maxNodes": st.integers(1, 1000),
        }
    )


any_pool = st.sampled_from(
    [(types, capacity) for types in (CPU_TYPES, GPU_TYPES) for capacity in ("spot", "on-demand")]
).flatmap(lambda kind: pools_of(*kind))
passing = st.fixed_dictionaries(
    {"procurementTimeout": durations}, optional={"maxFailures": st.integers(0, 99)}
)


fallback_sections = st.fixed_dictionaries(
    {},
    optional={
        "failures": st.sampled_from(["any", "evictions"]),
        "outageWindow": durations,
        "giveUpAfter": st.integers(900, 2_592_000).map(
            lambda seconds: format_duration(timedelta(seconds=seconds))
        ),
        "applicationFailures": st.integers(-1, 99),
        "startTimeout": durations,
        "deadline": durations,
    },
)

shapes = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={
            "pods": st.integers(1, 64),
            "cpu": st.integers(1, 448)
            | st.integers(1, 448_000).map(format_cpu)
            | st.sampled_from((0.5, 1.5)),
            "memory": st.integers(1, 4_194_304).map(format_memory)
            | st.sampled_from(("1.5Gi", "500M", "2Ti")),
            "gpus": st.integers(1, 16),
            "accelerator": st.just("a100"),
            "devices": st.sampled_from(({}, {"ephemeral-storage": "1Gi"})),
            "tolerations": st.sampled_from(([], [{"key": "team", "operator": "Exists"}])),
            "architectures": st.sampled_from(([], ["amd64"], ["amd64", "arm64"])),
            "samePlacement": st.just("zone"),
        },
    ).map(lambda shape: shape if "gpus" in shape else {**shape, "accelerator": None}),
    max_size=4,
    unique_by=lambda shape: str(shape["name"]),
)
#: With room for the largest of these gangs.
quotas = st.one_of(
    st.just({"enforced": False}),
    st.fixed_dictionaries({}, optional={"gpus": st.integers(1024, 4096), "pods": st.integers(64, 4096)}),
)


def is_gpu(pool: Document) -> bool:
    return cast("list[str]", pool["instanceTypes"])[0] in GPU_TYPES


@st.composite
def ladders(draw: DrawFn, pools: list[Document]) -> list[Document]:
    """A ladder over pools of one kind of machine, ending on demand or on spot without a limit."""
    gpu = draw(st.booleans())
    kind = [pool for pool in pools if is_gpu(pool) == gpu] or [pool for pool in pools if not is_gpu(pool)]
    chosen = draw(
        st.lists(st.sampled_from(kind), min_size=1, max_size=4, unique_by=lambda pool: str(pool["name"]))
    )
    tiers: list[Document] = [{"pool": pool["name"], **draw(passing)} for pool in chosen[:-1]]
    last: Document = {"pool": chosen[-1]["name"]}
    if chosen[-1]["capacity"] == "spot":
        last["maxFailures"] = UNLIMITED
    return [*tiers, last]


@st.composite
def platforms(draw: DrawFn) -> Document:
    """A valid local stack's document."""
    default: Document = {**draw(pools_of(CPU_TYPES, "on-demand")), "default": True}
    unnamed = [default, *draw(st.lists(any_pool, max_size=5))]
    pool_names = draw(st.lists(names, min_size=len(unnamed), max_size=len(unnamed), unique=True))
    pools: list[Document] = [{"name": name, **pool} for name, pool in zip(pool_names, unnamed, strict=True)]
    namespaces = draw(st.lists(names.map(lambda name: f"t-{name}"), max_size=3, unique=True))
    return {
        "cloud": "local",
        "pools": cast("JsonValue", pools),
        "namespaces": [
            {
                "name": name,
                "ladder": cast("JsonValue", draw(ladders(pools))),
                "fallback": draw(fallback_sections),
                "shapes": cast("JsonValue", draw(shapes)),
                "quota": draw(quotas),
            }
            for name in namespaces
        ],
    }


@given(platforms())
def test_every_valid_platform_parses_and_written_again_parses_to_the_same(document: Document) -> None:
    assert not problems(document), "a document that keeps all rules is valid"
    platform = read(document)
    written = cast("Json", json.loads(platform.model_dump_json(by_alias=True, exclude_none=True)))
    assert read(written) == platform, "nothing is lost or changed on the way"


@given(platforms(), st.data())
def test_an_unknown_field_anywhere_is_exactly_one_problem(document: Document, data: st.DataObject) -> None:
    lists = [
        cast("list[Document]", document[section]) for section in ("pools", "namespaces") if document[section]
    ]
    data.draw(st.sampled_from([document, *[item for items in lists for item in items]]))["surprise"] = 1
    found = problems(document)
    assert len(found) == 1, f"one mistake is one problem, not {[str(problem) for problem in found]}"
    assert found[0].field.endswith(".surprise"), "and the field is named"


@given(platforms(), st.data())
def test_a_missing_pool_is_one_problem_for_each_tier_that_names_it(
    document: Document, data: st.DataObject
) -> None:
    pools = cast("list[Document]", document["pools"])
    gone = pools.pop(data.draw(st.integers(0, len(pools) - 1)))
    ladders_naming_it = [
        tier
        for namespace in cast("list[Document]", document["namespaces"])
        for tier in cast("list[Document]", namespace["ladder"])
        if tier["pool"] == gone["name"]
    ]
    found = problems(document)
    lost_default = 1 if gone.get("default") else 0
    assert len(found) == len(ladders_naming_it) + lost_default, f"{[str(problem) for problem in found]}"


KEYS = (
    "cloud",
    "pools",
    "namespaces",
    "name",
    "ladder",
    "pool",
    "cluster",
    "version",
    "shapes",
    "cpu",
    "quota",
)


@given(any_json(*KEYS))
def test_any_document_parses_or_causes_problems_with_a_fix(document: JsonValue) -> None:
    given_cloud = {**document, "cloud": "local"} if isinstance(document, dict) else document
    found = problems(given_cloud)
    assert all(problem.fix for problem in found), "a refusal without a fix leaves the user alone"


DIGEST = "sha256:" + 64 * "a"


@pytest.mark.parametrize(
    "image",
    [
        None,
        "ghcr.io/acme/fallback-controller:0.1.0",
        f"ghcr.io/acme/fallback-controller@{DIGEST}",
        f"registry.example.com:5000/a/b_c/controller:v1@{DIGEST}",
        "localhost:5000/controller:dev",
    ],
)
def test_a_complete_image_reference_is_valid(image: str | None) -> None:
    assert ControllerSection(image=image).image == image, "as it is; without one, the program knows its own"


@pytest.mark.parametrize(
    "image",
    [
        "",
        "fallback-controller:0.1.0",
        "ghcr.io/acme/fallback-controller",
        "https://ghcr.io/acme/fallback-controller:0.1.0",
        "ghcr.io/Holdfast/fallback-controller:0.1.0",
        "ghcr.io/acme/fallback-controller:0.1.0 ",
        "ghcr.io/acme/fallback-controller@sha256:abc",
    ],
)
def test_an_incomplete_image_reference_is_a_problem(image: str) -> None:
    with pytest.raises(ValidationError, match="path and a tag"):
        ControllerSection(image=image)
