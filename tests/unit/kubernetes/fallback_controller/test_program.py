"""How the controller's program gets into its pods."""

from base64 import b64decode
from dataclasses import replace

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.fallback_controller.component import (
    FallbackController,
    FallbackControllerArgs,
    deployment_spec,
)
from pulumi_holdfast.kubernetes.fallback_controller.program import (
    LARGEST_CONFIG_MAP,
    Archive,
    ControllerImages,
    controller_images,
)
from pulumi_holdfast.ladder.json import Json
from tests.support.fakes.pulumi_engine import record
from tests.support.inputs import text
from tests.support.json_objects import obj, objects

PROGRAM = Archive(name="program", content=b"PK one", digest="a" * 64)
PACKAGES = Archive(name="packages", content=b"PK two", digest="b" * 64)
IMAGES = ControllerImages(
    controller="docker.io/library/python:3.13",
    placeholder="registry.k8s.io/pause:3",
    archives=(PROGRAM, PACKAGES),
)


def pod(images: ControllerImages) -> Json:
    return obj(obj(deployment_spec(images, 2)["template"])["spec"])


def container(images: ControllerImages) -> Json:
    (found,) = objects(pod(images)["containers"])
    return found


def test_the_pod_mounts_every_archive_and_imports_from_it() -> None:
    mounted = {str(each["name"]): each for each in objects(container(IMAGES)["volumeMounts"])}
    volumes = {str(each["name"]): obj(each["configMap"])["name"] for each in objects(pod(IMAGES)["volumes"])}
    assert volumes == {"program": PROGRAM.config_map, "packages": PACKAGES.config_map}
    assert all(each["readOnly"] for each in mounted.values())
    (path,) = [
        str(each["value"]) for each in objects(container(IMAGES)["env"]) if each["name"] == "PYTHONPATH"
    ]
    assert path.split(":") == [
        f"{mounted['program']['mountPath']}/program.zip",
        f"{mounted['packages']['mountPath']}/packages.zip",
    ]
    assert container(IMAGES)["command"] == ["python", "-S", "-m", "pulumi_holdfast.controller"]


def test_an_image_with_the_program_in_it_runs_as_it_is() -> None:
    own = controller_images("3.13", "3", None, own="registry.example.com/c:1", archives=())
    assert own.controller == "registry.example.com/c:1"
    assert not {"command", "env", "volumeMounts"} & container(own).keys()
    assert "volumes" not in pod(own)


def test_archives_are_immutable_config_maps_that_exist_before_the_deployment() -> None:
    args = FallbackControllerArgs(images=IMAGES, replicas=1)
    controller = record(lambda: FallbackController("fallback", args))
    maps = controller.of(":ConfigMap")
    assert {text(each, "metadata", "name") for each in maps} == {PROGRAM.config_map, PACKAGES.config_map}
    for each in maps:
        assert each.inputs["immutable"] is True, f"{each.name}: running code is changed by an update only"
        (content,) = obj(each.inputs["binaryData"]).values()
        assert b64decode(str(content)).startswith(b"PK"), f"{each.name} has the archive"
    assert controller.everything_before(controller.one(":Deployment")) >= {each.name for each in maps}


def test_changed_modules_get_a_new_config_map_under_a_new_resource() -> None:
    changed = replace(PROGRAM, digest="c" * 64)
    names: list[str] = []
    for archive in (PROGRAM, changed):
        args = FallbackControllerArgs(images=replace(IMAGES, archives=(archive,)), replicas=1)
        names.append(record(lambda args=args: FallbackController("fallback", args)).one(":ConfigMap").name)
    assert names[0] != names[1]
    assert PROGRAM.config_map != changed.config_map


@pytest.mark.parametrize(
    ("mirror", "own", "controller", "placeholder"),
    [
        (None, None, f"docker.io/library/python:{versions.PYTHON_IMAGE}", "registry.k8s.io/pause:3.10.1"),
        (
            "mirror.example.com/m",
            None,
            f"mirror.example.com/m/library/python:{versions.PYTHON_IMAGE}",
            "mirror.example.com/m/pause:3.10.1",
        ),
        (
            "mirror.example.com/m",
            "own.example.com/c:2",
            "own.example.com/c:2",
            "mirror.example.com/m/pause:3.10.1",
        ),
    ],
)
def test_images_come_from_the_mirror_unless_one_is_set(
    mirror: str | None, own: str | None, controller: str, placeholder: str
) -> None:
    found = controller_images(versions.PYTHON_IMAGE, "3.10.1", mirror, own=own, archives=(PROGRAM,))
    assert (found.controller, found.placeholder) == (controller, placeholder), "the cluster must pull it"
    assert bool(found.archives) == (own is None)


def test_the_limit_of_an_archive_is_that_of_a_config_map() -> None:
    assert LARGEST_CONFIG_MAP == 1_048_576
