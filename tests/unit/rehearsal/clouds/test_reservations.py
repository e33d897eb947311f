"""Reservations of simulated accounts: the clouds refuse those that do not exist, or are over."""

import json
from pathlib import Path

import pytest

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.reservations import (
    AZURE_RESERVATION_GROUP,
    EC2_RESERVATION,
    GCE_RESERVATION,
)
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine.values import Properties, Value
from tests.support.clusters.aks_console import AksConsole
from tests.support.clusters.gke_console import GPUS, GkeConsole
from tests.support.clusters.provider_calls import Provider, invoke, refusal, refused

BLOCK = "cr-0123456789abcdef0"
HELD: Json = {"instanceType": "p5.48xlarge", "availabilityZone": "us-east-1a", "instanceCount": 4}
OVER: Json = {**HELD, "endDate": "2020-01-08T11:30:00Z"}
GROUP = "/subscriptions/0/resourceGroups/capacity/providers/Microsoft.Compute/capacityReservationGroups/h100"


def add(state_file: Path, token: str, name: str, inputs: Json) -> None:
    with CloudState(state_file).changing() as account:
        account.put(CloudObject(type=token, id=name, urn="", inputs=inputs))


def read_block(aws: Provider) -> "Properties":
    arguments: Properties = {"typeName": "AWS::EC2::CapacityReservation", "identifier": BLOCK}
    return invoke(aws, "aws:cloudcontrol/getResource:getResource", arguments)


def test_ec2_answers_for_a_reservation_of_the_account(aws: Provider, state_file: Path) -> None:
    refused(lambda: read_block(aws), f"reservation {BLOCK} is not simulated; only a real account knows it")
    add(state_file, EC2_RESERVATION, BLOCK, HELD)
    properties = json.loads(str(read_block(aws)["properties"]))
    assert (properties["InstanceType"], properties["TotalInstanceCount"]) == ("p5.48xlarge", 4)


@pytest.mark.parametrize(("name", "inputs"), [(BLOCK, OVER), ("cr-0fedcba9876543210", HELD)])
def test_ec2_does_not_have_a_reservation_that_is_over_or_of_another_account(
    aws: Provider, state_file: Path, name: str, inputs: Json
) -> None:
    add(state_file, EC2_RESERVATION, name, inputs)
    assert f"with identifier '{BLOCK}' was not found" in refusal(lambda: read_block(aws))


def affinity(name: str) -> "dict[str, Value]":
    return {
        "machineType": "a2-highgpu-8g",
        "guestAccelerators": GPUS,
        "reservationAffinity": {
            "consumeReservationType": "SPECIFIC_RESERVATION",
            "key": "compute.googleapis.com/reservation-name",
            "values": [name],
        },
    }


def test_gke_rejects_a_pool_of_a_reservation_that_the_project_does_not_have(
    gcp: Provider, state_file: Path
) -> None:
    console = GkeConsole(gcp=gcp)
    console.cluster()
    add(state_file, GCE_RESERVATION, "a100", {})
    add(state_file, GCE_RESERVATION, "old", {"deleteAtTime": "2020-01-08T11:30:00Z"})
    for name in ("old", "other"):
        refused(
            lambda name=name: console.pool("reserved", **affinity(name)),
            f"Error 400: Reservation '{name}' was not found or is not ready to be used",
        )
    assert console.pool("reserved", **affinity("a100"))
    assert console.pool("block", **affinity("a100/reservationBlocks/b1"))


def test_aks_rejects_a_pool_of_an_unknown_group(azure: Provider, state_file: Path) -> None:
    console = AksConsole(azure=azure)
    console.cluster()
    add(state_file, AZURE_RESERVATION_GROUP, GROUP, {})
    reason = refusal(lambda: console.pool("reserved", capacityReservationGroupID=f"{GROUP}-2"))
    assert "CapacityReservationGroupNotFound" in reason
    assert console.pool("reserved", capacityReservationGroupID=GROUP.upper())
