"""Every shipped stack file parses in every region and zone of the tables, and a fix there keeps the architecture."""

import json
import re
from pathlib import Path
from typing import Final

import pytest

from pulumi_holdfast.clouds import cloud_of
from pulumi_holdfast.config.loader import PLATFORM, load_yaml
from pulumi_holdfast.config.rules import market_of, nearest_machine
from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.machines import family_of, machine_catalogue, regions, zones_of
from tests.support.doc_pages import ROOT
from tests.support.json_objects import obj

REGION_KEYS: Final = {"aws": "aws:region", "azure": "azure-native:location", "gcp": "gcp:region"}
#: The stacks of templates/ are the development stacks.
FILES: Final = sorted(file for file in ROOT.glob("stacks/Pulumi.*.yaml") if not file.match("*.local.yaml"))


def config_of(file: Path) -> Json:
    return obj(obj(load_yaml(file.read_text())).get("config"))


def cloud_name(file: Path) -> str:
    return str(obj(config_of(file)[PLATFORM]).get("cloud"))


def moved(file: Path, region: str) -> Json:
    """The file's configuration for another region, with as many of its zones, in its partition."""
    config = config_of(file)
    cloud = cloud_name(file)
    own = str(config[REGION_KEYS[cloud]])
    zones = zones_of(region) or tuple(f"{region}{letter}" for letter in "abc" if cloud == "aws")
    text = json.dumps(config)
    if cloud == "azure" and not zones:
        text = re.sub(r', "zones": \[[\d, ]*\]', "", text)
    for place, zone in enumerate(zones_of(own) if zones else ()):
        there = zones[place] if place < len(zones) else zones[0]
        text = text.replace(f'"{zone}"', f'"{there}"')
    text = text.replace(f'"{own}"', f'"{region}"').replace(f"locations/{own}/", f"locations/{region}/")

    if region.startswith(("cn-", "us-gov-")):
        text = text.replace("arn:aws:", "arn:aws-cn:" if region.startswith("cn-") else "arn:aws-us-gov:")

    # Fewer zones than in the file's own region: each once.
    def once(found: re.Match[str]) -> str:
        return json.dumps(list(dict.fromkeys(json.loads(found[0]))))

    return json.loads(re.sub(r'\["[^\]"]*"(, "[^\]"]*")*\]', once, text))


def problems_in(file: Path, region: str) -> tuple[Problem, ...]:
    config = moved(file, region)
    cloud, document = cloud_of(config[PLATFORM])
    settings = {key: None if config.get(key) is None else str(config[key]) for key in cloud.settings}
    try:
        cloud.read(document, settings)
    except ConfigError as error:
        return tuple(error.problems)
    return ()


def is_of_gpus_sold_elsewhere(problem: Problem, cloud: str, region: str) -> bool:
    """Whether a problem is a machine with GPUs that no configuration could get in the region."""
    name, _, rest = problem.value.removeprefix('"').partition('", ')
    return rest == f"which {region} does not offer" and machine_catalogue(cloud)[name].gpus > 0


@pytest.mark.parametrize(
    ("file", "region"),
    [
        pytest.param(file, region, id=f"{file.relative_to(ROOT)}-{region}")
        for file in FILES
        for region in sorted(regions(cloud_name(file)))
    ],
)
def test_a_shipped_stack_parses_in_every_region(file: Path, region: str) -> None:
    wrong = [
        problem
        for problem in problems_in(file, region)
        if not is_of_gpus_sold_elsewhere(problem, cloud_name(file), region)
    ]
    assert wrong == []


@pytest.mark.parametrize("cloud", ["aws", "azure"])
def test_the_fix_of_a_type_that_a_region_does_not_offer_keeps_the_architecture_and_the_gpus(
    cloud: str,
) -> None:
    catalogue = machine_catalogue(cloud)
    seen: set[str] = set()
    fixed = 0
    for region in sorted(regions(cloud)):
        market = market_of(cloud, region, what="machine", setting="", command="")
        for name, machine in market.elsewhere.items():
            family = family_of(name) or name.partition(".")[0]
            if family in seen:
                continue
            seen.add(family)
            near = nearest_machine(name, market)
            if near is not None:
                fixed += 1
                assert (catalogue[near].arch, catalogue[near].gpus > 0) == (machine.arch, machine.gpus > 0)
    assert fixed > len(seen) / 2
