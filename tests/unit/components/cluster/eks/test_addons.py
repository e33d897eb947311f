"""The five add-ons: pinned, in an order that works, on nodes that are there."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from holdfast.components.cluster.eks.addon_versions import KUBERNETES_VERSIONS, addon_versions
from holdfast.scheduling.taints import GPU, SPOT
from holdfast.scheduling.taints import SYSTEM as SYSTEM_TAINT
from tests.support.eks_cluster import recorded_cluster, versions
from tests.support.inputs import text, value

if TYPE_CHECKING:
    from tests.support.fakes.pulumi_engine import Recorded, Recording

_BEFORE_NODES = {"vpc-cni", "kube-proxy", "eks-pod-identity-agent"}
_AFTER_NODES = {"coredns", "aws-ebs-csi-driver"}


def addon(recording: Recording, name: str) -> Recorded:
    (found,) = [one for one in recording.of(":Addon") if one.inputs["addonName"] == name]
    return found


def configuration(recording: Recording, name: str) -> dict[str, object]:
    return json.loads(text(addon(recording, name), "configurationValues"))


def test_there_are_all_five_each_at_its_pinned_version() -> None:
    found = {text(one, "addonName"): text(one, "addonVersion") for one in recorded_cluster().of(":Addon")}
    pinned = versions()
    assert found == {
        "vpc-cni": pinned.vpc_cni,
        "kube-proxy": pinned.kube_proxy,
        "eks-pod-identity-agent": pinned.pod_identity_agent,
        "coredns": pinned.coredns,
        "aws-ebs-csi-driver": pinned.ebs_csi,
    }, "left out, a version means the newest of the day"


@pytest.mark.parametrize("preview", [False, True])
def test_nodes_come_after_what_they_need_and_before_what_needs_them(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    nodes = recording.one(":NodeGroup")
    before_nodes = recording.everything_before(nodes)
    for name in _BEFORE_NODES:
        assert addon(recording, name).name in before_nodes, f"a node without {name} never gets ready"
    for name in _AFTER_NODES:
        found = addon(recording, name)
        assert nodes.name in recording.everything_before(found), (
            f"EKS waits 20 minutes for {name}, then fails"
        )


@pytest.mark.parametrize("preview", [False, True])
def test_everything_inside_comes_after_nodes_and_add_ons_and_goes_before_them(preview: bool) -> None:
    recording = recorded_cluster(preview=preview)
    before = recording.everything_before(recording.one(":kubernetes"))
    needed = {one.name for one in [*recording.of(":Addon"), recording.one(":NodeGroup")]}
    assert needed <= before, f"{needed - before} would be gone while operators still finish their work"


def test_deployments_of_add_ons_run_on_the_system_nodes() -> None:
    recording = recorded_cluster()
    places = {
        "coredns": configuration(recording, "coredns"),
        "the EBS driver's controller": configuration(recording, "aws-ebs-csi-driver")["controller"],
    }
    for what, place in places.items():
        assert place == {
            "nodeSelector": {"holdfast.dev/system": "true"},
            "tolerations": [{"key": SYSTEM_TAINT.key, "operator": "Exists"}],
        }, f"{what} on a pool's node would keep it from ever being empty"


@pytest.mark.parametrize("taint", [SPOT, GPU, SYSTEM_TAINT])
def test_what_runs_on_every_node_tolerates_every_taint(taint: object) -> None:
    recording = recorded_cluster()
    assert configuration(recording, "eks-pod-identity-agent")["tolerations"] == [{"operator": "Exists"}], (
        f"a pod on a node with {taint} gets no identity"
    )
    assert configuration(recording, "aws-ebs-csi-driver")["node"] == {"tolerateAllTaints": True}, (
        f"a pod on a node with {taint} gets no volume"
    )


def test_the_ebs_driver_has_an_identity_of_its_own_before_its_pods_start() -> None:
    recording = recorded_cluster()
    identity = recording.one(":PodIdentityAssociation")
    role = recording.one(":Role", "cluster-services-ebs-iam-role")
    assert (identity.inputs["namespace"], identity.inputs["serviceAccount"]) == (
        "kube-system",
        "ebs-csi-controller-sa",
    ), "the service account of the driver's controller"
    assert role.name in identity.depends_on, "the role is not the nodes'"
    assert identity.name in addon(recording, "aws-ebs-csi-driver").depends_on, (
        "a pod is given its identity when it is made and not later"
    )


def test_the_ebs_driver_reaches_this_clusters_volumes_only() -> None:
    recording = recorded_cluster()
    attached = [
        one for one in recording.of(":RolePolicyAttachment") if one.name.startswith("cluster-services")
    ]
    assert [text(one, "policyArn") for one in attached] == [
        "arn:aws:iam::aws:policy/AmazonEBSCSIDriverEKSClusterScopedPolicy"
    ], "the older policies reach every volume in the account"
    statement = json.loads(text(recording.one(":Role", "cluster-services-ebs-iam-role"), "assumeRolePolicy"))
    assert value(statement["Statement"][0], "Condition", "StringEquals") == {
        "aws:RequestTag/eks-cluster-name": "holdfast-dev",
        "aws:RequestTag/kubernetes-namespace": "kube-system",
        "aws:RequestTag/kubernetes-service-account": "ebs-csi-controller-sa",
    }, "no other workload can be given this role"


def test_what_others_changed_by_hand_is_put_right() -> None:
    for one in recorded_cluster().of(":Addon"):
        assert one.inputs["resolveConflictsOnUpdate"] == "OVERWRITE", "the program says what an add-on is"


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_add_ons_are_pinned_as_eks_spells_them_and_proxies_to_their_own_version(version: str) -> None:
    found = addon_versions(version)
    assert found is not None, f"{version} is listed and has no add-ons"
    for name, pinned in vars(found).items():
        assert re.fullmatch(r"v\d+\.\d+\.\d+-eksbuild\.\d+", pinned), f"{name} of {version}: {pinned}"
    assert found.kube_proxy.startswith(f"v{version}."), "kube-proxy goes with its Kubernetes version"


@pytest.mark.parametrize("version", ["1.35", "1.36.3", "v1.36", ""])
def test_a_version_without_add_ons_is_said_to_have_none(version: str) -> None:
    assert addon_versions(version) is None, f"nothing is known to run on {version!r}"
