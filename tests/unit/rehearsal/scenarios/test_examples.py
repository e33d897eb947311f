"""The examples that scenarios apply, and the table of their results."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.output import render_table
from pulumi_holdfast.rehearsal.scenarios.manifests import acting_as, load_example

CHECKOUT = Path(__file__).resolve().parents[4]


def test_a_missing_example_is_named(tmp_path: Path) -> None:
    with pytest.raises(RehearsalError, match=r"examples/local/no-such\.yaml cannot be read"):
        load_example(tmp_path, "no-such")


def test_an_example_gets_the_service_account_of_its_namespace() -> None:
    jobset = load_example(CHECKOUT, "jobset-spot", cloud="gcp")
    acting = acting_as(jobset, "trainer-of-mine")
    assert '"serviceAccountName": "trainer-of-mine"' in json.dumps(acting)
    assert json.dumps(acting).replace("trainer-of-mine", "trainer-gcp-dev") == json.dumps(jobset)


def test_the_columns_of_a_table_are_as_wide_as_their_widest_cell() -> None:
    table = render_table(("scenario", "result"), [("a", "long enough"), ("much longer", "b")])
    assert table.splitlines() == [
        "scenario     result",
        "-----------  -----------",
        "a            long enough",
        "much longer  b",
    ]
