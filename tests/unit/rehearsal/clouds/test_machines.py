"""The machines of a cloud's groups join the cluster with their group, and leave with it."""

from collections.abc import Generator, Sequence
from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds import CloudProvider
from pulumi_holdfast.rehearsal.clouds.catalogue import Catalogue
from pulumi_holdfast.rehearsal.clouds.machines import MachineGroup, MachineSource, SimulatedMachine
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.plugin import serve
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.support.clusters.provider_calls import Engine, Provider, calling

# Any type will do: which of them keep machines running is for a cloud's catalogue to say.
_GROUP = "aws:ec2/vpc:Vpc"
_OTHER = "aws:sqs/queue:Queue"


def _one_machine(group: MachineGroup) -> Sequence[SimulatedMachine]:
    tags = group.target.inputs.get("tags")
    return [SimulatedMachine(name=f"of-{group.target.id}-{tags}", provider_id="", labels={}, capacity={})]


class Joined:
    """A cluster that records the machines of each call, and can refuse them."""

    def __init__(self) -> None:
        self.kept: list[list[str]] = []
        self.refuses = False

    def keep(self, source: MachineSource) -> None:
        if self.refuses:
            raise RehearsalError("instances failed to join")
        self.kept.append([machine.name for machine in source()])


@pytest.fixture
def joined() -> Joined:
    return Joined()


@pytest.fixture
def aws(tmp_path: Path, joined: Joined, monkeypatch: pytest.MonkeyPatch) -> Generator[Provider]:
    def catalogue_of(package: str) -> Catalogue:
        return Catalogue(fleets={_GROUP: _one_machine})

    monkeypatch.setattr("pulumi_holdfast.rehearsal.clouds.provider.catalogue_of", catalogue_of)
    provider = CloudProvider("aws", tmp_path / "aws.json", Faults(), nodes=joined)
    with serve(provider) as served, calling(served.port) as provider:
        yield provider


def test_machines_come_change_and_go_with_their_group(aws: Provider, joined: Joined) -> None:
    group = Engine(provider=aws, type=_GROUP)
    made, _ = group.create({"cidrBlock": "10.0.0.0/16"})
    assert joined.kept == [[f"of-{made}-None"]]
    group.update(made, {"cidrBlock": "10.0.0.0/16", "tags": {"a": "b"}})
    assert len(joined.kept) == 2
    group.delete(made)
    assert joined.kept[-1] == []


def test_only_groups_cause_a_call_and_each_has_all_machines(aws: Provider, joined: Joined) -> None:
    Engine(provider=aws, type=_OTHER).create({"name": "q"})
    assert joined.kept == [], "every create would look after nodes"
    Engine(provider=aws, type=_GROUP).plan({"cidrBlock": "10.0.0.0/16"})
    assert joined.kept == []
    Engine(provider=aws, type=_GROUP, name="one").create({"cidrBlock": "10.0.0.0/16"})
    Engine(provider=aws, type=_GROUP, name="two").create({"cidrBlock": "10.1.0.0/16"})
    assert [len(each) for each in joined.kept] == [1, 2], "the second group would drive out the first"


def test_a_group_with_failed_machines_exists(aws: Provider, joined: Joined, tmp_path: Path) -> None:
    joined.refuses = True
    group = Engine(provider=aws, type=_GROUP)
    group.refuses_create(
        {"cidrBlock": "10.0.0.0/16"}, "was created but failed to initialize: instances failed to join"
    )
    assert _GROUP in (tmp_path / "aws.json").read_text()
