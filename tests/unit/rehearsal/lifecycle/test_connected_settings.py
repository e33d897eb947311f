"""What the files of two stacks become in a rehearsal of both."""

from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json, mapping
from pulumi_holdfast.rehearsal.engine.settings import read_yaml
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.lifecycle.connected_settings import StackSettings, accepting, alone, leaving
from pulumi_holdfast.stack_program import load_platform

ISSUER = "https://oidc.eks.us-west-2.amazonaws.com/id/0123456789ABCDEF"
AWAY: Json = {"cluster": "aws-dev-2", "pool": "cpu-spot", "maxFailures": 3, "procurementTimeout": "20m"}


def stack(name: str) -> StackSettings:
    """A stack of the repository."""
    file = Path(__file__).parents[4] / "stacks" / f"Pulumi.{name}.yaml"
    return StackSettings(name=name, reference=f"organization/holdfast/{name}", settings=read_yaml(file))


def with_document(given: StackSettings, **fields: object) -> StackSettings:
    document = cast("Json", {**given.platform, **fields})
    return replace(given, settings=given.changed(document))


def read(settings: Json, folder: Path) -> StackSettings:
    """The settings, once the loader of stack files has accepted them."""
    file = folder / "Pulumi.dev.yaml"
    file.write_text(yaml.safe_dump(settings))
    load_platform(file)
    return StackSettings(name="dev", reference="", settings=settings)


def test_a_stack_starts_as_its_file_says_where_that_names_no_other_cluster() -> None:
    assert alone(stack("aws-dev")) == stack("aws-dev").settings


def test_the_program_accepts_what_connects_two_stacks_whose_files_do_not_name_each_other(
    tmp_path: Path,
) -> None:
    home, there = stack("aws-dev"), stack("aws-dev-2")
    at_home = read(leaving(home, there), tmp_path)
    assert at_home.platform["clusters"] == [{"name": "aws-dev-2", "stack": there.reference}]
    assert at_home.ladders()["tabular"][1] == AWAY
    beyond = read(accepting(there, home, issuer=ISSUER), tmp_path)
    assert beyond.platform["acceptsFrom"] == [
        {"name": "aws-dev", "namespaces": ["tabular"], "issuer": ISSUER, "checkpoints": home.reference}
    ]


def test_names_and_tiers_that_the_files_have_stay_and_other_clusters_go(tmp_path: Path) -> None:
    own: Json = {**AWAY, "cluster": "ohio", "procurementTimeout": "5m"}
    third: Json = {**AWAY, "cluster": "third"}
    tier, last = stack("aws-dev").ladders()["tabular"]
    (tabular,) = map(mapping, cast("list[Json]", stack("aws-dev").platform["namespaces"]))
    home = with_document(
        stack("aws-dev"),
        clusters=[
            {"name": "ohio", "stack": "my-organization/holdfast/aws-dev-2"},
            {"name": "third", "stack": "my-organization/holdfast/aws-3"},
        ],
        namespaces=[{**tabular, "ladder": [tier, own, third, last]}],
    )
    at_home = read(leaving(home, stack("aws-dev-2")), tmp_path)
    assert at_home.platform["clusters"] == [{"name": "ohio", "stack": "organization/holdfast/aws-dev-2"}]
    assert at_home.ladders()["tabular"] == [tier, own, last]
    assert StackSettings(name="", reference="", settings=alone(home)).ladders()["tabular"] == [tier, last]
    given = {"name": "oregon", "issuer": "https://old", "namespaces": ["tabular"]}
    there = with_document(
        stack("aws-dev-2"), acceptsFrom=[{**given, "checkpoints": "my-organization/holdfast/aws-dev"}]
    )
    (entry,) = cast(
        "list[Json]", read(accepting(there, home, issuer=ISSUER), tmp_path).platform["acceptsFrom"]
    )
    assert (entry["name"], entry["issuer"]) == ("oregon", ISSUER)


def test_stacks_without_a_common_namespace_are_refused() -> None:
    there = with_document(stack("aws-dev-2"), namespaces=[])
    with pytest.raises(RehearsalError, match="has no training namespace of two tiers that aws-dev-2 has too"):
        leaving(stack("aws-dev"), there)
