"""Programs on simulated clouds, run by the real engine: of one component, of a GKE cluster, of an EKS cluster."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pulumi
import pulumi_aws as aws
import pulumi_gcp as gcp
import pulumi_kubernetes as kubernetes
import pytest

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.ladder.labels import SYSTEM
from pulumi_holdfast.ladder.taints import SYSTEM as SYSTEM_TAINT
from pulumi_holdfast.rehearsal.clouds.simulated_clouds import SimulatedClouds
from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState
from pulumi_holdfast.rehearsal.engine import CommandOutcome, EngineFailure, Rehearsal, Subject
from pulumi_holdfast.rehearsal.engine.faults import Faults
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.paths import Workspace
from tests.support.clusters.control_plane import CHECKOUT
from tests.support.command_line import Program, StackCommands

_PROJECT = "clouds"
_STACK = "test"
_OPERATIONS = frozenset({"create", "update", "replace", "delete"})


def network(*, tags: dict[str, str] | None = None, cidr: str = "10.0.0.0/16") -> None:
    """Register an AWS network with one subnet, `zone-a`."""
    from pulumi_aws import ec2

    vpc = ec2.Vpc("network", cidr_block=cidr, tags=tags)
    subnet = ec2.Subnet("zone-a", vpc_id=vpc.id, cidr_block=cidr.replace("/16", "/24"))
    pulumi.export("vpc", vpc.id)
    pulumi.export("subnet", subnet.arn)


def bucket(name: str, *, import_id: str | None = None) -> None:
    """Register an AWS bucket, `checkpoints`."""
    from pulumi_aws import s3

    s3.Bucket("checkpoints", bucket=name, opts=pulumi.ResourceOptions(import_=import_id))


@dataclass(frozen=True, kw_only=True)
class CloudProgram(StackCommands):
    """A stack on simulated clouds."""

    root: Path
    packages: tuple[str, ...] = ("aws",)
    config: Json = field(default_factory=dict[str, JsonValue])

    def cloud(self, package: str = "aws") -> CloudState:
        """Return a cloud, to look at or to change as its console would."""
        return CloudState(self._folder.cloud_states / f"{package}.json")

    def objects(self, type_token: str) -> list[CloudObject]:
        """Return the objects of a type that exist."""
        return self.cloud(type_token.split(":")[0]).read().of_type(type_token)

    def everything(self) -> list[CloudObject]:
        """Return all objects of the stack's first cloud, in the order of their creation."""
        return self.cloud(self.packages[0]).read().all()

    @property
    def _folder(self) -> EngineFolder:
        return EngineFolder.of(_STACK, self._workspace)

    @property
    def _workspace(self) -> Workspace:
        """A checkout that shares nothing with this one but the tools and their pins."""
        for shared in (".tools", "tools"):
            link = self.root / shared
            if not link.is_symlink():
                link.symlink_to(CHECKOUT / shared)
        return Workspace(project_root=self.root)

    def _run(
        self, program: Program, faults: Faults, command: Callable[[Rehearsal], CommandOutcome]
    ) -> CommandOutcome:
        providers = SimulatedClouds(
            folder=self._folder.cloud_states,
            checkpoint=self._folder.checkpoint(_PROJECT, _STACK),
            faults=faults,
        )
        subject = Subject(
            program=program,
            project={"name": _PROJECT, "runtime": "python"},
            settings={"config": self.config},
            packages=self.packages,
        )
        with Rehearsal.open(_STACK, self._workspace, subject=subject, providers=providers) as rehearsal:
            return command(rehearsal)


def operations(outcome: CommandOutcome) -> dict[str, str]:
    """What a run does to resources, by name: `update`, or `replace` for all the steps of a replacement."""
    return {
        step.urn.rpartition("::")[2]: step.operation
        for step in outcome.steps
        if step.operation in _OPERATIONS
    }


def create_once(stack: CloudProgram, program: Program) -> CommandOutcome:
    """Create what a program registers, check that its preview and a second run agree, and return the first outcome."""
    planned = stack.preview(program)
    made = stack.up(program)
    assert planned.changes["create"] == made.changes["create"], "the preview announced something else"
    assert stack.up(program).changed == 0, "a second run has nothing to do"
    assert stack.refresh(program).changed == 0, "the cloud holds what the program says"
    return made


def destroy_once_released(stack: CloudProgram, protected: Program, released: Program) -> None:
    """Check that a protected stack is destroyed, completely, only after an update that releases it."""
    before = stack.everything()
    with pytest.raises(EngineFailure, match="protect"):
        stack.destroy(protected)
    assert stack.everything() == before, "a protected cluster was deleted, or a part of it"
    assert "replace" not in stack.up(released).changes, "lifting the protection changes nothing else"
    stack.destroy(released)
    assert stack.everything() == [], "something outlived the cluster"


EKS_CLUSTER = "aws:eks/cluster:Cluster"
NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"


def eks(
    *,
    name: str = "holdfast-test",
    machines: int = 2,
    labels: Mapping[str, str] | None = None,
    with_object: bool = True,
) -> Callable[[], None]:
    """A program with a cluster of this name; `with_object`: a ConfigMap inside it."""

    def program() -> None:
        subnets = _subnets()
        role, allowed = _role("cluster", "eks.amazonaws.com", "AmazonEKSClusterPolicy")
        node_role, joining = _role("node", "ec2.amazonaws.com", "AmazonEKSWorkerNodePolicy")
        cluster = aws.eks.Cluster(
            "cluster",
            name=name,
            role_arn=role.arn,
            version="1.36",
            vpc_config={"subnet_ids": [subnet.id for subnet in subnets]},
            access_config={"authentication_mode": "API", "bootstrap_cluster_creator_admin_permissions": True},
            opts=pulumi.ResourceOptions(depends_on=allowed),
        )
        group = aws.eks.NodeGroup(
            "system",
            cluster_name=cluster.name,
            node_role_arn=node_role.arn,
            subnet_ids=[subnet.id for subnet in subnets],
            instance_types=["m7i.large"],
            scaling_config={"desired_size": machines, "min_size": machines, "max_size": machines},
            labels={SYSTEM: "true", **(labels or {})},
            taints=[{"key": SYSTEM_TAINT.key, "value": SYSTEM_TAINT.value, "effect": "NO_SCHEDULE"}],
            opts=pulumi.ResourceOptions(depends_on=joining),
        )
        if with_object:
            inside = kubernetes.Provider(
                "inside",
                kubeconfig=kubeconfig(cluster.name, cluster.endpoint, cluster.certificate_authority.data),
            )
            kubernetes.core.v1.ConfigMap(
                "conf",
                metadata={"name": f"conf-{name}", "namespace": "default"},
                data={"k": "1"},
                opts=pulumi.ResourceOptions(provider=inside, depends_on=[group]),
            )

    return program


def kubeconfig(
    name: pulumi.Input[str], endpoint: pulumi.Input[str], authority: pulumi.Input[str]
) -> pulumi.Output[str]:
    """A kubeconfig that asks the AWS CLI for a token."""
    return pulumi.Output.all(name, endpoint, authority).apply(
        lambda known: json.dumps(_eks_kubeconfig(*known))
    )


def _eks_kubeconfig(name: str, endpoint: str, authority: str) -> dict[str, object]:
    token = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws"}
    arguments = ["eks", "get-token", "--cluster-name", name]
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "it", "cluster": {"server": endpoint, "certificate-authority-data": authority}}
        ],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": {**token, "args": arguments}}}],
    }


def _subnets() -> list[aws.ec2.Subnet]:
    vpc = aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
    return [
        aws.ec2.Subnet(
            f"zone-{letter}",
            vpc_id=vpc.id,
            cidr_block=f"10.0.{at}.0/24",
            availability_zone=f"eu-west-1{letter}",
        )
        for at, letter in enumerate("ab")
    ]


def _role(name: str, service: str, *policies: str) -> tuple[aws.iam.Role, list[aws.iam.RolePolicyAttachment]]:
    trust = {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole"]}],
    }
    role = aws.iam.Role(name, name=f"holdfast-test-{name}", assume_role_policy=json.dumps(trust))
    attachments = [
        aws.iam.RolePolicyAttachment(
            f"{name}-{policy}", role=role.name, policy_arn=f"arn:aws:iam::aws:policy/{policy}"
        )
        for policy in policies
    ]
    return role, attachments


GKE_CLUSTER = "gcp:container/cluster:Cluster"
NODE_POOL = "gcp:container/nodePool:NodePool"
ZONES = ("europe-west4-a", "europe-west4-b")
SPOT_TAINT = {"key": "cloud.google.com/gke-spot", "value": "true", "effect": "NO_SCHEDULE"}


def a_pool(
    name: str, *, machine: str = "e2-standard-4", spot: bool = False, **overrides: Any
) -> dict[str, Any]:
    """The arguments of a node pool that is autoscaled from nothing to four."""
    config: dict[str, Any] = {
        "machine_type": machine,
        "labels": {"holdfast.dev/pool": name},
        "service_account": "nodes@elsewhere.iam.gserviceaccount.com",
        **({"spot": True, "taints": [SPOT_TAINT]} if spot else {}),
        **overrides.pop("node_config", {}),
    }
    scaling = {
        "total_min_node_count": 0,
        "total_max_node_count": 4,
        "location_policy": "ANY" if spot else "BALANCED",
        **overrides.pop("autoscaling", {}),
    }
    return {"name": name, "node_config": config, "autoscaling": scaling, **overrides}


def gke(
    pools: Sequence[dict[str, Any]] = (), *, name: str = "holdfast-test", system: int = 1
) -> Callable[[], None]:
    """A program with a cluster of this name, `system` nodes in each zone, and pools."""

    def program() -> None:
        cluster = gcp.container.Cluster(
            "cluster",
            name=name,
            location="europe-west4",
            node_locations=list(ZONES),
            initial_node_count=1,
            remove_default_node_pool=True,
            deletion_protection=False,
        )
        first = gcp.container.NodePool(
            "system",
            name="system",
            cluster=cluster.name,
            location="europe-west4",
            node_locations=list(ZONES),
            node_count=system,
            node_config={"machine_type": "e2-standard-2", "labels": {"holdfast.dev/system": "true"}},
        )
        for pool in pools:
            arguments: dict[str, Any] = {"node_locations": list(ZONES), **pool}
            gcp.container.NodePool(
                str(pool["name"]),
                cluster=cluster.name,
                location="europe-west4",
                **arguments,
                opts=pulumi.ResourceOptions(depends_on=[first]),
            )
        inside = kubernetes.Provider("inside", kubeconfig=_gke_kubeconfig(cluster))
        kubernetes.core.v1.ConfigMap(
            "conf",
            metadata={"name": f"conf-{name}", "namespace": "default"},
            data={"k": "1"},
            opts=pulumi.ResourceOptions(provider=inside, depends_on=[first]),
        )

    return program


def _gke_kubeconfig(cluster: gcp.container.Cluster) -> pulumi.Output[str]:
    authority = cluster.master_auth.apply(lambda found: str(found.cluster_ca_certificate))
    return pulumi.Output.all(cluster.endpoint, authority).apply(
        lambda known: json.dumps(_document(str(known[0]), str(known[1])))
    )


def _document(host: str, authority: str) -> dict[str, object]:
    token = {"apiVersion": "client.authentication.k8s.io/v1beta1", "command": "gke-gcloud-auth-plugin"}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": "it", "cluster": {"server": f"https://{host}", "certificate-authority-data": authority}}
        ],
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "me"}}],
        "current-context": "it",
        "users": [{"name": "me", "user": {"exec": token}}],
    }
