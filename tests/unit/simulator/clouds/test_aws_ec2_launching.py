"""What machines are launched by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.support.provider_calls import Engine, Provider, refusal

if TYPE_CHECKING:
    from holdfast.simulator.pulumi.values import Properties

TEMPLATE: Final = "aws:ec2/launchTemplate:LaunchTemplate"
PLACEMENT: Final = "aws:ec2/placementGroup:PlacementGroup"


def test_a_change_of_a_launch_template_is_a_version_more(aws: Provider) -> None:
    engine = Engine(provider=aws, type=TEMPLATE)
    inputs: Properties = {"name": "system", "metadataOptions": {"httpTokens": "required"}}
    made, outputs = engine.create(inputs)
    assert (outputs["latestVersion"], outputs["defaultVersion"]) == (1, 1), "AWS counts from one"
    changed = engine.update(made, {**inputs, "metadataOptions": {"httpPutResponseHopLimit": 1}})
    assert (changed["latestVersion"], changed["defaultVersion"]) == (2, 1), (
        "a node group that names the latest version rolls; the default one stays until it is moved"
    )


def test_tags_of_a_launch_template_are_no_new_version(aws: Provider) -> None:
    engine = Engine(provider=aws, type=TEMPLATE)
    made, _ = engine.create({"name": "system"})
    tagged = engine.update(made, {"name": "system", "tags": {"team": "vision"}})
    assert tagged["latestVersion"] == 1, "a tag replaces no machine"


def test_the_default_version_follows_where_it_is_told_to(aws: Provider) -> None:
    engine = Engine(provider=aws, type=TEMPLATE)
    inputs: Properties = {"name": "system", "updateDefaultVersion": True}
    made, _ = engine.create(inputs)
    assert engine.update(made, {**inputs, "imageId": "ami-1"})["defaultVersion"] == 2, "it is the latest"


def test_a_launch_templates_name_is_its_own(aws: Provider) -> None:
    Engine(provider=aws, type=TEMPLATE).create({"name": "system"})
    reason = refusal(lambda: Engine(provider=aws, type=TEMPLATE, name="two").create({"name": "system"}))
    assert reason.startswith("InvalidLaunchTemplateName.AlreadyExistsException: Launch template name"), reason


def test_a_placement_group_is_known_by_its_name(aws: Provider) -> None:
    made, outputs = Engine(provider=aws, type=PLACEMENT).create({"name": "fabric", "strategy": "cluster"})
    assert made == "fabric", "machines name it"
    assert str(outputs["placementGroupId"]).startswith("pg-"), "it has an id beside"
    two = Engine(provider=aws, type=PLACEMENT, name="two")
    reason = refusal(lambda: two.create({"name": "fabric", "strategy": "spread"}))
    assert reason == "InvalidPlacementGroup.Duplicate: The placement group 'fabric' already exists.", reason
