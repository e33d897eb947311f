"""The volumes of data of stacks with every kind, in a training namespace of a real API server: its claims bind, no others do."""

from collections.abc import Callable, Generator, Mapping
from typing import cast

import pytest
import yaml

from pulumi_holdfast.controller.kube.client import ApiError
from pulumi_holdfast.kubernetes.storage import NETWORK_FILE_SYSTEMS
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks
from tests.support.builders.gang_pods import pods_of
from tests.support.builders.training_jobs import pod
from tests.support.clusters.admission import refusal
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.fakes.pulumi_engine import Recording
from tests.support.json_objects import obj, objects

pytestmark = pytest.mark.cluster

STACKS: Mapping[str, Callable[[str], Recording]] = {
    "aws": aws_stacks.stack,
    "azure": azure_stacks.stack,
    "gcp": gcp_stacks.stack,
}
VOLUMES = ("datasets", "home", "scratch")
CLAIM = "PersistentVolumeClaim"


def claim(name: str, volume: str, size: str) -> Json:
    spec: Json = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "",
        "volumeName": volume,
        "resources": {"requests": {"storage": size}},
    }
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": {"name": name}, "spec": spec}


@pytest.fixture(params=STACKS)
def cloud(request: pytest.FixtureRequest, tenant: KubeClient) -> Generator[str]:
    """A cloud, whose stack's quota, volumes and claims of the namespace `vision` are there."""
    name = str(request.param)
    stack, made = STACKS[name](f"{name}-data"), list[Json]()
    for kind in ("ResourceQuota", "PersistentVolume", CLAIM):
        for each in stack.of(f":{kind}"):
            metadata, spec = obj(each.inputs["metadata"]), obj(each.inputs["spec"])
            if "vision" in (metadata.get("namespace"), obj(spec.get("claimRef")).get("namespace")):
                made.append({"apiVersion": "v1", "kind": kind, "metadata": metadata, "spec": spec})
    for each in made:
        tenant.apply(each, field_manager="tests")
    yield name
    for each in reversed(made):
        metadata = obj(each["metadata"])
        remove(tenant, str(each["kind"]), str(metadata["name"]), str(metadata.get("namespace", "default")))


def remove(client: KubeClient, kind: str, name: str, namespace: str) -> None:
    client.delete("v1", kind, name, namespace=namespace)
    client.wait_until_gone("v1", kind, name, namespace=namespace, timeout_seconds=60)


def test_its_claims_bind_within_its_quota_and_those_of_others_do_not(tenant: KubeClient, cloud: str) -> None:
    for name in VOLUMES:
        tenant.wait_for(
            "v1",
            CLAIM,
            name,
            namespace="vision",
            timeout_seconds=60,
            condition=lambda found: obj(obj(found or {}).get("status")).get("phase") == "Bound",
            what=f"the claim {name} to be bound",
        )
    tenant.wait_for(
        "v1",
        "ResourceQuota",
        "training",
        namespace="vision",
        timeout_seconds=60,
        condition=lambda found: (
            obj(obj(obj(found or {}).get("status")).get("used")).get("requests.storage") == "3Ki"
        ),
        what="the quota to count the three claims",
    )
    wide = claim("wide", "", "640Ti")
    with pytest.raises(ApiError, match=r"exceeded quota: training, requested: requests.storage=640Ti"):
        tenant.create({**wide, "metadata": {"name": "wide", "namespace": "vision"}})

    others = claim("home", "vision.home", "1Ki")
    tenant.apply({**others, "metadata": {"name": "home", "namespace": "tabular"}}, field_manager="tests")
    tenant.wait_list(
        "v1",
        "Event",
        namespace="tabular",
        timeout_seconds=60,
        condition=lambda events: any("already bound to a different claim" in str(each) for each in events),
        what="Kubernetes to refuse the volume of another namespace",
    )
    remove(tenant, CLAIM, "home", "tabular")

    job = cast("Json", yaml.safe_load((CHECKOUT / f"examples/{cloud}/jobset-data.yaml").read_text()))
    for spec in pods_of(job):
        mounted = objects(spec["volumes"])
        assert all(name in str(mounted) for name in VOLUMES)
        assert not refusal(
            tenant, pod(namespace="vision", spec={"containers": spec["containers"], "volumes": [*mounted]})
        )


@pytest.mark.parametrize("driver", NETWORK_FILE_SYSTEMS)
def test_a_pod_mounts_no_network_file_system_without_a_claim(tenant: KubeClient, driver: str) -> None:
    inline: Json = {"volumes": [{"name": "data", "csi": {"driver": driver}}]}
    assert "mount a claim of this one" in refusal(tenant, pod(namespace="tabular", spec=inline))
