"""What machines are launched by."""

from collections.abc import Mapping

from holdfast.simulator.clouds.catalogue import Making, Rules

_TEMPLATE = "aws:ec2/launchTemplate:LaunchTemplate"


def _latest_version(making: Making) -> int:
    """Every change of a template is a version more; its tags are not part of it."""
    current = making.inventory.find(_TEMPLATE, making.id) if making.id else None
    if current is None:
        return 1
    version = current.computed.get("latestVersion")
    before = int(version) if isinstance(version, int | float) else 1
    same = _launched(current.inputs) == _launched(making.inputs)
    return before if same else before + 1


def _launched(inputs: Mapping[str, object]) -> Mapping[str, object]:
    apart = {"defaultVersion", "tags", "updateDefaultVersion"}
    return {name: value for name, value in inputs.items() if name not in apart}


def _default_version(making: Making) -> int:
    if making.inputs.get("updateDefaultVersion") is True:
        return _latest_version(making)
    asked = making.inputs.get("defaultVersion")
    return int(asked) if isinstance(asked, int | float) else 1


RESOURCES: Mapping[str, Rules] = {
    _TEMPLATE: Rules(
        longest_name=128,
        computed={"latestVersion": _latest_version, "defaultVersion": _default_version},
        taken="InvalidLaunchTemplateName.AlreadyExistsException: Launch template name already in use.",
    ),
    "aws:ec2/placementGroup:PlacementGroup": Rules(
        longest_name=255,
        computed={"placementGroupId": lambda making: f"pg-{making.digest[:17]}"},
        immutable=frozenset({"partitionCount", "spreadLevel", "strategy"}),
        taken="InvalidPlacementGroup.Duplicate: The placement group '{name}' already exists.",
    ),
}
