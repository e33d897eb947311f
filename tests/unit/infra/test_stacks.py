"""What holds for the stacks of every cloud, composed under mocks."""

import importlib
import inspect
import json
from collections.abc import Callable, Mapping

import pytest

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders import aws_stacks, azure_stacks, gcp_stacks, local_stacks
from tests.support.builders.configurations import (
    SUBSCRIPTION,
    Document,
    aws_platform,
    fixed_platform,
    gcp_platform,
    list_of,
    nap_platform,
    platform_document,
    read,
)
from tests.support.doc_pages import ROOT
from tests.support.fakes.pulumi_engine import Recorded, Recording
from tests.support.inputs import mapping, text, value
from tests.support.mirrors import assert_charts_come_from, assert_images_come_from, assert_unmirrored

Change = Callable[[Document], object]

CLOUDS = {"aws": aws_stacks, "azure": azure_stacks, "gcp": gcp_stacks}
MODULES = {**CLOUDS, "local": local_stacks}
every_stack = pytest.mark.parametrize(
    ("cloud", "name"), [(cloud, name) for cloud, module in MODULES.items() for name in module.PLATFORMS]
)


#: Kind of stack → composes one after a change of its document, machines of a pool of this kind whose jobs should have a
#: fast network that it does not use, and the name of that network.
KINDS: Mapping[str, tuple[Callable[[Change], Recording], dict[str, JsonValue], str]] = {
    "local": (lambda change: local_stacks.composed(read(platform_document(change))), {"instanceTypes": ["g6.12xlarge"]}, ""),
    "aws": (lambda change: aws_stacks.composed(aws_platform(change)), {"instanceTypes": ["p5.48xlarge"]}, "Elastic Fabric Adapter"),
    "azure-nap": (lambda change: azure_stacks.composed(nap_platform(change)), {"vmSizes": ["Standard_ND96isr_H100_v5"]}, "InfiniBand"),
    "azure-fixed": (lambda change: azure_stacks.composed(fixed_platform(change)), {"vmSizes": ["Standard_ND96isr_H100_v5"]}, "InfiniBand"),
    "gcp": (lambda change: gcp_stacks.composed(gcp_platform(change)), {"machineType": "a3-highgpu-8g"}, "GPUDirect-TCPX"),
}  # fmt: skip


def with_additions(kind: str) -> Recording:
    """A stack with one more pool and one more namespace, each before the others."""
    compose, machines, _ = KINDS[kind]

    def add(document: Document) -> None:
        list_of(document, "pools").insert(0, {"name": "extra", "capacity": "spot", "maxNodes": 2, **machines})
        list_of(document, "namespaces").insert(0, {"name": "speech", "ladder": [{"pool": "cpu"}]})

    return compose(add)


def stack(cloud: str, name: str, *, preview: bool = False) -> Recording:
    return MODULES[cloud].stack(name, preview=preview)


def of(name: str) -> Recording:
    """One of the repository's own stacks."""
    return stack(name.partition("-")[0], name)


@pytest.mark.parametrize(
    ("cloud", "name"),
    # Together they have every part of a stack, each kind of pool and of network.
    [
        ("local", "local"),
        *(("aws", name) for name in ("aws-prod", "aws-data", "isolated", "brought")),
        *(("azure", name) for name in ("azure-prod", "azure-data", "mirrored", "accepting")),
        *(("gcp", name) for name in ("gcp-prod", "gcp-data", "with-classes", "accepting")),
    ],
)
def test_a_preview_registers_what_an_up_registers(cloud: str, name: str) -> None:
    planned = {resource.urn for resource in stack(cloud, name, preview=True)}
    registered = {resource.urn for resource in stack(cloud, name)}
    assert planned == registered


@every_stack
def test_resources_have_unique_names(cloud: str, name: str) -> None:
    # Azure derives the name of the storage account from its logical name, so the component has the same one.
    names = [each.name for each in stack(cloud, name) if each.custom or cloud != "azure"]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("kind", KINDS)
def test_an_added_pool_or_namespace_changes_no_other_urn(kind: str) -> None:
    before = {resource.urn for resource in KINDS[kind][0](lambda _: None)}
    added = {resource.urn for resource in with_additions(kind)}
    assert before < added, "an addition must not replace others"


@pytest.mark.parametrize("kind", ["local", "aws", "azure-nap", "gcp"])
def test_a_stack_without_training_namespaces_has_its_pools(kind: str) -> None:
    recording = KINDS[kind][0](lambda document: document.update(namespaces=[]))
    assert not recording.of("TrainingNamespace")
    assert len(recording.of(":NodePool")) >= 4


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "local"])
def test_a_preview_says_that_gangs_without_the_fast_network_use_tcp_only(kind: str) -> None:
    said = with_additions(kind).logged
    (line,) = [line for line in said if line.startswith("pool extra: jobs on several nodes")]
    assert "by TCP only" in line
    assert KINDS[kind][2] in line


@every_stack
def test_every_kubernetes_object_has_the_labels_and_the_provider_of_the_stack(cloud: str, name: str) -> None:
    marks = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": name}
    for resource in stack(cloud, name):
        if not resource.type.startswith("kubernetes:"):
            continue
        assert resource.provider == "main-cluster-kubernetes", f"{resource.name} would go to another cluster"
        if not resource.type.endswith(":Release"):
            found = mapping(resource, "metadata", "labels").items()
            assert found >= marks.items(), f"{resource.name} is found by its label"


@every_stack
def test_no_input_depends_on_where_the_checkout_is(cloud: str, name: str) -> None:
    """Two checkouts must give one state; only a local stack's kubeconfig and checkpoints are files."""
    here = [each.name for each in stack(cloud, name) if str(ROOT) in json.dumps(each.inputs, default=str)]
    of_this_machine = ("checkpoints", "main-cluster-kubernetes") if cloud == "local" else ()
    assert [each for each in here if not any(part in each for part in of_this_machine)] == []


#: What each cloud's SDK calls the tags of a resource.
TAGS = {"tags": "tags", "resource_labels": "resourceLabels", "labels": "labels"}


def field_of_tags(resource: Recorded) -> str | None:
    """Where the SDK's class of a resource takes tags, by its constructor; None: it takes none."""
    package, module, name = resource.type.split(":")
    sdk = f"pulumi_{package.replace('-', '_')}.{module.split('/')[0]}"
    parameters = inspect.signature(getattr(importlib.import_module(sdk), name)._internal_init).parameters
    # Filestore has tags, too, which are of another kind.
    fields = [field for field in TAGS if package != "gcp" or field != "tags"]
    return next((TAGS[field] for field in fields if field in parameters), None)


TAGGED = {
    "aws": {"Cluster", "NodeGroup", "LaunchTemplate", "Bucket", "Role", "Vpc"},
    "azure": {"ResourceGroup", "ManagedCluster", "StorageAccount", "UserAssignedIdentity"},
    "gcp": {"Cluster", "Bucket"},
    "gcp-data": {"Cluster", "Bucket", "GlobalAddress", "Instance"},
}
SPOT_ROLE = ":ServiceLinkedRole"


@pytest.mark.parametrize(
    ("cloud", "name"),
    [("aws", "aws-dev"), *((cloud, name) for cloud in ("azure", "gcp") for name in MODULES[cloud].PLATFORMS)],
)
def test_every_cloud_resource_with_tags_has_those_of_the_stack(cloud: str, name: str) -> None:
    marks = {"managed-by": "holdfast", "holdfast-stack": name}
    if cloud == "aws":
        marks = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": name}
    made = [each for each in stack(cloud, name) if each.type.startswith((f"{cloud}:", f"{cloud}-native:"))]
    tagged = {each.name: (each, field) for each in made if (field := field_of_tags(each)) is not None}
    kinds = {each.type.rpartition(":")[2] for each, _ in tagged.values()}
    assert kinds == (TAGGED.get(name) or TAGGED[cloud]) if cloud == "gcp" else kinds >= TAGGED[cloud]
    assert cloud != "aws" or len(tagged) > 40
    for resource, field in tagged.values():
        if resource.type.endswith(SPOT_ROLE):
            assert value(resource, field) is None
        else:
            found = mapping(resource, field).items()
            assert found >= marks.items(), f"{resource.name} is found, and paid for, by it"


OPERATORS = {
    "jobset": versions.JOBSET,
    "jobset-crds": versions.JOBSET,
    "kuberay-operator": versions.KUBERAY,
    "kuberay-crds": versions.KUBERAY,
}
NVIDIA = {"nvidia-device-plugin": versions.NVIDIA_DEVICE_PLUGIN}
EFA = {"aws-efa-k8s-device-plugin": versions.EFA_DEVICE_PLUGIN}


@pytest.mark.parametrize(
    ("name", "others"),
    [
        ("local", {"karpenter": versions.KARPENTER_KWOK_CHART, "karpenter-crds": versions.KARPENTER}),
        ("aws-prod", {"karpenter": versions.KARPENTER, "karpenter-crds": versions.KARPENTER, **NVIDIA, **EFA}),
        ("azure-dev", NVIDIA),
        ("azure-prod", NVIDIA),
        ("gcp-prod", {}),
    ],
)  # fmt: skip
def test_releases_have_the_versions_of_infra_versions(name: str, others: dict[str, str]) -> None:
    found = {text(release, "name"): text(release, "version") for release in of(name).of(":Release")}
    assert found == {**OPERATORS, **others}


#: The number of releases of a stack, and the stack that has a mirror.
MIRRORED = {"aws": (7, "isolated"), "azure": (5, "mirrored"), "gcp": (4, "mirrored")}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_charts_and_images_come_from_the_mirror_where_there_is_one(cloud: str) -> None:
    least, mirrored = MIRRORED[cloud]
    for name in (mirrored, f"{cloud}-dev", "brought"):
        releases = stack(cloud, name).of(":Release")
        assert len(releases) >= least
        if name == mirrored:
            assert_charts_come_from(CLOUDS[cloud].CHARTS, releases)
            assert_images_come_from(CLOUDS[cloud].IMAGES, releases)
        else:
            assert_unmirrored(releases)


@every_stack
def test_operators_run_with_two_replicas_in_the_cloud(cloud: str, name: str) -> None:
    paths = {"main-operators-jobset-controller": ("controller",), "main-operators-kuberay-controller": ()}
    if cloud == "aws":
        paths["main-karpenter-operator-controller"] = ()
    for release, path in paths.items():
        replicas = value(stack(cloud, name).one(":Release", release), "values", *path, "replicas")
        assert replicas == 2 or cloud == "local", f"{release} outlives a zone"


CHECKPOINTS = {
    "aws": {"main-checkpoints-key", *(
        f"main-checkpoints-{namespace}-{part}"
        for namespace in ("tabular", "vision")
        for part in ("bucket", "encryption", "lifecycle", "policy", "private", "versions")
    )},
    "azure": {"maincheckpoints", *(f"main-checkpoints-{part}" for part in ("group", "lifecycle", "service", "tabular", "vision"))},
    "gcp": {"main-checkpoints-bucket"},
}  # fmt: skip
CLUSTERS = {
    "aws": {"main-cluster-control-plane-eks", "main-cluster-control-plane-secrets-key"},
    "azure": {"main-cluster-control-plane-aks", "main-group-group"},
    "gcp": {"main-cluster-control-plane-gke"},
}
#: They serve every cluster and every bucket of the account or project.
SHARED = {
    "aws": {"main-spot-role"},
    "azure": set[str](),
    "gcp": {"main-cluster-key-grant", "main-checkpoints-key-use"},
}


@pytest.mark.parametrize("cloud", CLOUDS)
def test_production_protects_what_cannot_be_restored_and_development_nothing(cloud: str) -> None:
    production, development = of(f"{cloud}-prod"), of(f"{cloud}-dev")
    protected = {found.name for found in production if found.protect}
    assert protected == CLUSTERS[cloud] | CHECKPOINTS[cloud]
    kept = {found.name for found in production if found.retain_on_delete}
    assert kept == CHECKPOINTS[cloud] | SHARED[cloud]
    assert not [found.name for found in development if found.protect]
    stays = {found.name for found in development if found.retain_on_delete}
    assert stays == ({"main-spot-role"} if cloud == "aws" else set()), "except for what is the account's"


KEYS = "projects/holdfast-prod/locations/us-central1/keyRings/holdfast/cryptoKeys"
DISKS = f"/subscriptions/{SUBSCRIPTION}/resourceGroups/holdfast-keys/providers/Microsoft.Compute/diskEncryptionSets/holdfast"
AKS = ":ManagedCluster"


@pytest.mark.parametrize(
    ("name", "kind", "path", "expected", "reason"),
    [
        ("aws-prod", ":Bucket", "forceDestroy", False, "AWS refuses to delete it as well"),
        ("gcp-prod", ":Bucket", "forceDestroy", False, "Cloud Storage refuses to delete it as well"),
        ("aws-dev", ":Bucket", "forceDestroy", True, "its checkpoints go with it"),
        ("gcp-dev", ":Bucket", "forceDestroy", True, "its checkpoints go with it"),
        ("aws-prod", ":Cluster", "deletionProtection", True, "the console asks AWS, not Pulumi"),
        ("gcp-prod", ":Cluster", "deletionProtection", True, "removal of Pulumi's protection is not enough"),
        ("aws-dev", ":Cluster", "deletionProtection", False, "AWS deletes it"),
        ("gcp-dev", ":Cluster", "deletionProtection", False, "the provider deletes it"),
        ("aws-prod", ":Cluster", "vpcConfig.endpointPublicAccess", False, "no access from the internet"),
        ("aws-dev", ":Cluster", "vpcConfig.publicAccessCidrs", ["203.0.113.0/24"], "not from everywhere"),
        ("aws-dev", ":Cluster", "vpcConfig.endpointPrivateAccess", True, "nodes need no naming"),
        ("azure-prod", AKS, "apiServerAccessProfile.enablePrivateCluster", True, "no public address"),
        ("azure-prod", AKS, "apiServerAccessProfile.authorizedIPRanges", None, "and no public access"),
        ("azure-dev", AKS, "apiServerAccessProfile.authorizedIPRanges", ["203.0.113.0/24", "198.51.100.7/32"], "a node that is not let in never joins"),
        ("gcp-prod", ":Cluster", "privateClusterConfig.enablePrivateEndpoint", True, "no public address"),
        ("gcp-prod", ":Cluster", "controlPlaneEndpointsConfig.dnsEndpointConfig.allowExternalTraffic", False, "no name that answers"),
        ("gcp-prod", ":Cluster", "masterAuthorizedNetworksConfig.cidrBlocks", [{"cidrBlock": "10.48.0.0/20"}], "except for the configured blocks"),
        ("gcp-dev", ":Cluster", "masterAuthorizedNetworksConfig.cidrBlocks", [{"cidrBlock": "203.0.113.0/24"}], "not from everywhere"),
        ("gcp-dev", ":Cluster", "masterAuthorizedNetworksConfig.gcpPublicCidrsAccessEnabled", False, "nor from every machine on Google Cloud"),
        ("gcp-prod", ":Cluster", "location", "us-central1", "a control plane in each zone"),
        ("gcp-dev", ":Cluster", "location", "us-central1-a", "one zone is free of charge"),
        ("azure-prod", ":StorageAccount", "sku.name", "Standard_ZRS", "a copy in each zone"),
        ("azure-prod", AKS, "diskEncryptionSetID", DISKS, "the key of the user"),
        ("gcp-prod", ":Cluster", "databaseEncryption", {"state": "ENCRYPTED", "keyName": f"{KEYS}/cluster"}, "the key of the user"),
        ("gcp-prod", ":Bucket", "encryption.defaultKmsKeyName", f"{KEYS}/checkpoints", "a key of its own"),
    ],
)  # fmt: skip
def test_production_is_private_and_durable_and_development_can_be_reached_and_destroyed(
    name: str, kind: str, path: str, expected: JsonValue, reason: str
) -> None:
    found = of(name).of(kind)
    assert found
    assert [value(each, *path.split(".")) for each in found] == [expected] * len(found), reason
