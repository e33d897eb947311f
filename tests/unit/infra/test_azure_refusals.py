"""Refusals of an Azure stack's configuration: each mistake is one problem, with field, value, what is allowed, the fix."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.aws_documents import section
from tests.support.azure_documents import SUBNET, azure_problems, fixed_document, nap_document
from tests.support.azure_mistakes import FIXED_MISTAKES, MISTAKES, NAP_MISTAKES, checkpoints, pool
from tests.support.builders.configurations import Document, entry

if TYPE_CHECKING:
    from collections.abc import Callable

PLATFORM = "holdfast:platform"
DOCUMENTS = {"nap": nap_document, "fixed": fixed_document}

#: Every mistake, with the way of scaling in which it is made.
MADE = {
    **{
        f"{scaling}: {name}": (scaling, mistake)
        for scaling in DOCUMENTS
        for name, mistake in MISTAKES.items()
    },
    **{f"nap: {name}": ("nap", mistake) for name, mistake in NAP_MISTAKES.items()},
    **{f"fixed: {name}": ("fixed", mistake) for name, mistake in FIXED_MISTAKES.items()},
}


@pytest.mark.parametrize("scaling", DOCUMENTS)
def test_the_documents_that_each_test_breaks_are_valid(scaling: str) -> None:
    assert not azure_problems(DOCUMENTS[scaling]()), "else every test below would be about something else"


@pytest.mark.parametrize("mistake", MADE)
def test_one_mistake_is_one_problem_with_its_field_and_mend(mistake: str) -> None:
    scaling, (change, field, fix) = MADE[mistake]
    found = azure_problems(DOCUMENTS[scaling](change))
    assert [problem.field for problem in found] == [PLATFORM + field], (
        "it is named where it is, and only there"
    )
    assert fix in found[0].fix, "the user is told what to write"
    assert found[0].value, "what stands there is shown"
    assert found[0].allowed, "what may stand there is shown"
    assert len(str(found[0])) < 700, "a refusal is a line that can be read, not a catalogue"


@pytest.mark.parametrize(
    ("beside", "field", "fix"),
    [
        ({"location": None}, "azure-native:location", "`azure-native:location: eastus2`"),
        ({"location": "East US 2"}, "azure-native:location", 'Write "eastus2".'),
        ({"location": "eastsu2"}, "azure-native:location", 'Write "eastus2".'),
        ({"location": "us-central1"}, "azure-native:location", "Write "),
        ({"location": "mars"}, "azure-native:location", "`azure-native:location: eastus2`"),
        ({"subscription": "my-subscription"}, "azure-native:subscriptionId", "`az account show --query id`"),
        ({"tenant": "example.com"}, "azure-native:tenantId", "`az account show --query tenantId`"),
    ],
)
def test_what_stands_beside_the_document_is_refused_by_its_own_key(
    beside: dict[str, str | None], field: str, fix: str
) -> None:
    (problem,) = azure_problems(nap_document(), **beside)
    assert problem.field == field, "and nothing is said of the zones and machines of a location that is none"
    assert fix in problem.fix, "the line to write is shown"


def test_subscription_and_tenant_may_be_those_of_the_credentials() -> None:
    assert not azure_problems(nap_document(), subscription=None, tenant=None), "Azure is asked then"


@pytest.mark.parametrize("scaling", DOCUMENTS)
def test_a_wrong_location_hides_no_other_mistake(scaling: str) -> None:
    document = DOCUMENTS[scaling](
        lambda d: (entry(d, "pools", 0).pop("default"), section(d, "cluster").update(version="1.30"))
    )
    fields = {problem.field for problem in azure_problems(document, location="mars")}
    assert fields == {"azure-native:location", f"{PLATFORM}.pools", f"{PLATFORM}.cluster.version"}, (
        "whoever fixes one mistake should not meet the next one only then"
    )


def test_all_mistakes_are_shown_at_once() -> None:
    def change(document: Document) -> None:
        for name in ("no way in", "checkpoints kept for longer than a year", "pods among the nodes"):
            MISTAKES[name][0](document)
        NAP_MISTAKES["a price cap"][0](document)

    fields = {problem.field.removeprefix(PLATFORM) for problem in azure_problems(nap_document(change))}
    assert fields == {
        ".cluster.access",
        ".checkpoints.retainDays",
        ".network.podsCidr",
        ".pools[1].spotMaxPrice",
    }, "one run, one list"


def test_a_cap_is_refused_with_the_reason_and_the_way_out() -> None:
    (problem,) = azure_problems(nap_document(pool(1, spotMaxPrice=0.5)))
    for part in ("−1, up to the on-demand price", "scaling: fixed", "procurementTimeout"):
        assert part in problem.fix, "who has had one elsewhere learns why not here, and what there is instead"


def test_an_autoscaled_scale_set_beside_node_auto_provisioning_is_explained() -> None:
    (problem,) = azure_problems(nap_document(lambda d: section(d, "cluster").update(scaling="both")))
    assert "no autoscaled scale sets beside node auto-provisioning" in problem.allowed, (
        "AKS forbids it, not we"
    )


@pytest.mark.parametrize("scaling", DOCUMENTS)
def test_a_slip_in_the_way_of_scaling_makes_no_pool_look_wrong(scaling: str) -> None:
    document = DOCUMENTS[scaling](lambda d: section(d, "cluster").update(scaling="Scalesets"))
    assert [problem.field for problem in azure_problems(document)] == [f"{PLATFORM}.cluster.scaling"], (
        "there is one mistake, and the pools are read as what they are"
    )


def test_a_location_without_zones_takes_none() -> None:
    def change(document: Document) -> None:
        pool(0, zones=[1, 2])(document)
        document.update(pools=[entry(document, "pools", 0)], namespaces=[])

    found = azure_problems(nap_document(change), location="westcentralus")
    assert [problem.field.removeprefix(PLATFORM) for problem in found] == [
        ".checkpoints.redundancy",
        ".pools[0].zones",
    ], "neither machines nor copies can be in zones there"


def test_checkpoints_without_zones_are_allowed_where_there_are_none() -> None:
    def change(document: Document) -> None:
        checkpoints(redundancy="Standard_LRS")(document)
        document.update(pools=[entry(document, "pools", 0)], namespaces=[])

    assert not azure_problems(nap_document(change), location="westcentralus"), (
        "it is said how they are kept there"
    )


def test_a_machine_that_another_location_has_is_told_apart_from_one_that_there_is_not() -> None:
    change = pool(2, vmSizes=["Standard_NC24ads_A100_v4"])
    found = azure_problems(nap_document(change), location="westcentralus")
    (problem,) = [one for one in found if one.field == f"{PLATFORM}.pools[2].vmSizes[0]"]
    assert "which westcentralus does not have" in problem.value, "it is no typo"
    assert "azure-native:location" in problem.fix, "another location is a way out"


def test_a_private_cluster_asks_nobody_from_where_its_nodes_call() -> None:
    def change(document: Document) -> None:
        section(document, "cluster").update(access={"private": True, "publicName": True})
        document.update(network={"subnetId": SUBNET})

    assert not azure_problems(nap_document(change)), "they reach the API server by its private address"


@pytest.mark.parametrize("cap", [-1, -1.0, 0.00001, 12, 3.06])
def test_a_price_that_aks_takes_is_taken(cap: float) -> None:
    assert not azure_problems(fixed_document(pool(1, spotMaxPrice=cap))), "dollars an hour, or -1"


TAKEN: dict[str, Callable[[Document], object]] = {
    "a private cluster": lambda d: section(d, "cluster").update(access={"private": True}),
    "patches, and nodes as they are": lambda d: section(d, "cluster").update(
        upgrades={"cluster": "patch", "nodeOs": "None"}
    ),
    "a federated token": lambda d: section(d, "cluster").update(login="workloadidentity"),
    "a small network": lambda d: d.update(network={"cidr": "10.40.0.0/24", "servicesCidr": "10.41.0.0/28"}),
}


@pytest.mark.parametrize("way", TAKEN)
def test_what_may_be_said_is_taken(way: str) -> None:
    assert not azure_problems(nap_document(TAKEN[way])), "it is one of the ways"
