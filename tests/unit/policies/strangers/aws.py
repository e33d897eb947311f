"""Programs on EKS: general NodePools of blueprints, GPU pools, Auto Mode, managed node groups."""

import json
from dataclasses import replace

from pulumi_holdfast.ladder.labels import EFA_NODE, POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rules.verdicts import Word
from tests.support.builders.stack_resources import namespace, resource
from tests.unit.policies.strangers.fixes import put_at
from tests.unit.policies.strangers.programs import (
    END,
    LEAVES,
    ON_DEMAND_TIER,
    QUOTA,
    REACH,
    SAME,
    SMALL,
    SPOT_TIER,
    Stranger,
    ladder,
    node_class,
    node_pool,
    of_provider,
    one_of,
    training,
)

G5 = one_of("node.kubernetes.io/instance-type", "g5.12xlarge", "g5.24xlarge")
SPOT = node_pool("spot", G5, kinds=["spot"])
ON_DEMAND = node_pool("on-demand", G5, kinds=["on-demand"])
P4D = one_of("node.kubernetes.io/instance-type", "p4d.24xlarge")
A100S = [node_pool("spot", P4D, kinds=["spot"]), node_pool("on-demand", P4D, kinds=["on-demand"])]
FOUR_GPUS: Value = {"name": "four", "pods": 1, "cpu": "2", "memory": "8Gi", "gpus": 4}
ON_A100S: Value = {"name": "fabric", "pods": 2, "cpu": "8", "memory": "64Gi", "gpus": 8, "efa": 4}
SPOT_SCALER = resource("kubernetes:helm.sh/v3:Release", "scaler", {"chart": "cluster-autoscaler", "version": "9.46.6", "values": {"autoscalingGroups": [{"name": "eks-spot-1a2b", "maxSize": 4}]}})  # fmt: skip
EFA_PLUGIN = resource("kubernetes:helm.sh/v3:Release", "efa", {"chart": "aws-efa-k8s-device-plugin", "version": "0.5.13", "values": {"supportedInstanceLabels": {"keys": [EFA_NODE], "values": ["true"]}}})  # fmt: skip
A10G_BELOW_A100 = [
    node_pool("spot", one_of("node.kubernetes.io/instance-type", "p4d.24xlarge"), kinds=["spot"]),
    ON_DEMAND,
]
GENERAL = node_pool(
    "default",
    one_of("karpenter.k8s.aws/instance-category", "c", "m", "r"),
    one_of("kubernetes.io/arch", "amd64"),
    {"key": "karpenter.k8s.aws/instance-generation", "operator": "Gt", "values": ["2"]},
    kinds=["spot", "on-demand"],
    labels={},
    limits={"cpu": "1000"},
)
ON_BOTH: Value = {
    "name": "both",
    "pods": 1,
    "cpu": "2",
    "memory": "8Gi",
    "gpus": 1,
    "architectures": ["amd64", "arm64"],
}
GPU_TAINT: Value = {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"}
WIDE: Value = {"name": "wide", "pods": 16, "cpu": "40", "memory": "64Gi", "gpus": 4}
FABRIC: Value = {"name": "fabric", "pods": 2, "cpu": "90", "memory": "512Gi", "gpus": 8, "efa": 32}
NOT_SPOT: Value = {"key": "karpenter.sh/capacity-type", "operator": "NotIn", "values": ["spot"]}
EAST, WEST = (resource("aws:eks/cluster:Cluster", name, {"name": name}) for name in ("east", "west"))


def node_group(name: str, kind: str, **fields: Value) -> StackResource:
    """A managed node group with the pool label."""
    props: dict[str, Value] = {
        "nodeGroupName": name,
        "clusterName": "east",
        "capacityType": kind,
        "instanceTypes": ["g5.12xlarge"],
        "labels": {POOL: name},
        "scalingConfig": {"minSize": 0.0, "maxSize": 4.0},
        **fields,
    }
    return resource("aws:eks/nodeGroup:NodeGroup", name, props)


def to(cluster: StackResource) -> StackResource:
    """A Kubernetes provider with a kubeconfig of a cluster."""
    made = resource("pulumi:providers:kubernetes", f"to-{cluster.logical_name}", {})
    return replace(made, refers_to={"kubeconfig": (cluster.urn,)})


def with_adapters(*interfaces: Value, named: str = "efa") -> list[StackResource]:
    """Node groups for a gang with fabric adapters, whose launch template has these network interfaces."""
    fields: dict[str, Value] = {"instanceTypes": ["p5.48xlarge"], "launchTemplate": {"name": named}}
    template: dict[str, Value] = {"name": "efa", "networkInterfaces": list(interfaces)}
    return [
        *training(shapes=[FABRIC]),
        node_group("spot", "SPOT", **fields),
        node_group("on-demand", "ON_DEMAND", **fields),
        resource("aws:ec2/launchTemplate:LaunchTemplate", "efa", template),
    ]


def patched(name: str, **spec: Value) -> StackResource:
    """A patch of a NodePool, with the pool label."""
    template: Value = {"metadata": {"labels": {POOL: name}}, "spec": spec.pop("template", {})}
    props: dict[str, Value] = {"metadata": {"name": name}, "spec": {"template": template, **spec}}
    return resource(f"{SPOT.type}Patch", f"{name}-patch", props)


def quota(pods: str) -> StackResource:
    """A quota of the namespace."""
    props: dict[str, Value] = {
        "metadata": {"name": "quota", "namespace": "vision"},
        "spec": {"hard": {"pods": pods}},
    }
    return resource("kubernetes:core/v1:ResourceQuota", "quota", props)


STARTING = node_pool("on-demand", G5, kinds=["on-demand"])
put_at(STARTING.props, "spec.template.spec.startupTaints", [GPU_TAINT])
LABELLED = [namespace(), replace(ladder(), type=f"{ladder().type}Patch")]
AUTO = resource("aws:eks/cluster:Cluster", "auto", {"computeConfig": {"enabled": True, "nodePools": ["general-purpose", "system"]}})  # fmt: skip
IN_EAST = of_provider(to(EAST), *training(), SPOT)

CLASS, OLD_IMAGE = (node_class("EC2NodeClass", "default") for _ in range(2))
put_at(OLD_IMAGE.props, "spec.amiSelectorTerms", [{"alias": "al2@v20250701"}])
NEW_CLUSTER = resource("aws:eks/cluster:Cluster", "lab", {"name": "lab", "version": "1.34"})

CHART = resource("kubernetes:helm.sh/v3:Release", "karpenter", {"chart": "oci://public.ecr.aws/karpenter/karpenter", "version": "^1.0", "values": {"settings": {}}})  # fmt: skip
OBJECTS = {"Statement": [{"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::b/*"}]}  # fmt: skip
PLATFORM = [
    CHART,
    resource("aws:s3/bucket:Bucket", "checkpoints", {"bucket": "checkpoints"}),
    resource("aws:iam/rolePolicy:RolePolicy", "jobs", {"policy": json.dumps(OBJECTS)}),
]

STRANGERS = (
    Stranger(name="a blueprint's general pool", reading="It trains nothing: no ladder, so nothing to prove.", word=None, resources=[GENERAL]),
    Stranger(name="a queue of Kueue without a ladder", reading="Kueue's flavors are not ladders.", word=None, resources=[GENERAL, resource("kubernetes:kueue.x-k8s.io/v1beta1:ClusterQueue", "queue", {"spec": {}})]),
    Stranger(name="spot and on-demand GPUs", reading="The gang of one fits both pools, and the timeout ends the wait.", word=Word.PROVED, resources=[*training(), SPOT, ON_DEMAND]),
    Stranger(name="a blueprint's pool named by a ladder", reading="Its nodes lack the label, and it mixes spot with on-demand.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "default"}), SPOT, GENERAL, ON_DEMAND], stops=frozenset({END})),
    Stranger(name="one pool of both capacity types", reading="Karpenter buys spot first, so the end is not on-demand.", word=Word.BROKEN, resources=[*training({"pool": "any"}), node_pool("any", G5, kinds=["spot", "on-demand"]), ON_DEMAND], stops=frozenset({END})),
    Stranger(name="failures alone lead past spot", reading="A sold-out market strands the job on tier 1.", word=Word.BROKEN, resources=[*training({"pool": "spot", "maxFailures": 5}, ON_DEMAND_TIER), SPOT, ON_DEMAND], stops=frozenset({LEAVES})),
    Stranger(name="a misspelled pool", reading="No pool here has the name of the last tier; another program may make it, which is not declared.", word=Word.NOT_JUDGED, resources=[*training(SPOT_TIER, {"pool": "on-demnd"}), SPOT, ON_DEMAND]),
    Stranger(name="an on-demand pool of another program", reading="The spot pool is made here, and nothing shows the on-demand one.", word=Word.NOT_JUDGED, resources=[*training(), SPOT]),
    Stranger(name="a tainted on-demand pool", reading="Nothing tolerates the taint of the on-demand pool.", word=Word.BROKEN, resources=[*training(), SPOT, node_pool("on-demand", G5, kinds=["on-demand"], taints=[GPU_TAINT])], stops=frozenset({REACH})),
    Stranger(name="a gang beyond the GPU limit", reading="16 pods of 4 GPUs need 64, and the pool may have 16.", word=Word.BROKEN, resources=[*training(shapes=[WIDE]), SPOT, node_pool("on-demand", one_of("node.kubernetes.io/instance-type", "g5.12xlarge"), kinds=["on-demand"], limits={"nvidia.com/gpu": "16"})], stops=frozenset({REACH})),
    Stranger(name="another accelerator on on-demand", reading="A job for A100s falls back to A10Gs, and no shape says that it runs there.", word=Word.BROKEN, resources=[*training(shapes=[]), *A10G_BELOW_A100], stops=frozenset({SAME})),
    Stranger(name="another accelerator for a shape that names none", reading="The shape runs on any GPU, and both pools have room for it.", word=Word.PROVED, resources=[*training(), *A10G_BELOW_A100]),
    Stranger(name="CPU jobs on spot machines with GPUs", reading="The shape requests no GPU.", word=Word.PROVED, resources=[*training(shapes=[{"name": "cpu", "pods": 1, "cpu": "2", "memory": "8Gi"}]), SPOT, node_pool("on-demand", one_of("node.kubernetes.io/instance-type", "m7i.4xlarge"), kinds=["on-demand"])]),
    Stranger(name="a NodePool for several pools", reading="Karpenter sets the value of the label that pods select.", word=Word.PROVED, resources=[*training(), SPOT, node_pool("lasting", G5, one_of(POOL, "on-demand", "other"), kinds=["on-demand"], labels={})]),
    Stranger(name="Arm machines below others", reading="Nothing says that the images run on both.", word=Word.ASSUMED, resources=[*training(), SPOT, node_pool("on-demand", one_of("node.kubernetes.io/instance-type", "g5g.4xlarge"), kinds=["on-demand"])]),
    Stranger(name="Arm machines below others, for images of both", reading="The shape says that the images run on both.", word=Word.PROVED, resources=[*training(shapes=[ON_BOTH]), SPOT, node_pool("on-demand", one_of("node.kubernetes.io/instance-type", "g5g.4xlarge"), kinds=["on-demand"])]),
    Stranger(name="a NodePool for any pool", reading="Its nodes get the label that pods select, whichever it is.", word=Word.PROVED, resources=[*training(), SPOT, node_pool("lasting", G5, {"key": POOL, "operator": "Exists"}, kinds=["on-demand"], labels={})]),
    Stranger(name="a NodePool for any pool, spot included", reading="Karpenter may buy spot from it for the last tier, too.", word=Word.BROKEN, resources=[*training(), SPOT, ON_DEMAND, node_pool("any", G5, {"key": POOL, "operator": "NotIn", "values": ["spot"]}, labels={})], stops=frozenset({END})),
    Stranger(name="fabric adapters on plain NodePools", reading="Karpenter attaches them; whether EFA's device plugin runs is not shown here.", word=Word.NOT_JUDGED, resources=[*training(shapes=[ON_A100S]), *A100S]),
    Stranger(name="a device plugin that is not on the nodes", reading="The plugin of the program runs on nodes with a label that these lack.", word=Word.BROKEN, resources=[*training(shapes=[ON_A100S]), *A100S, EFA_PLUGIN], stops=frozenset({REACH})),
    Stranger(name="a node group of unlike sizes", reading="Cluster Autoscaler takes the first type for the node, on which four GPUs do not fit.", word=Word.NOT_JUDGED, resources=[*training(shapes=[FOUR_GPUS]), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND", instanceTypes=["g5.xlarge", "g5.12xlarge"])]),
    Stranger(name="a node group of several types that all take the pods", reading="Whichever type comes, the pod fits.", word=Word.ASSUMED, resources=[*training(), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND", instanceTypes=["g5.12xlarge", "g5.24xlarge"])]),
    Stranger(name="no shapes and smaller machines on on-demand", reading="Whether jobs use eight GPUs a pod is not declared.", word=Word.NOT_JUDGED, resources=[*training(shapes=[]), node_pool("spot", one_of("node.kubernetes.io/instance-type", "g5.48xlarge"), kinds=["spot"]), node_pool("on-demand", one_of("node.kubernetes.io/instance-type", "g5.12xlarge"), kinds=["on-demand"])]),
    Stranger(name="a quota smaller than the gang", reading="The quota never admits the gang.", word=Word.BROKEN, resources=[*training(shapes=[{"name": "pair", "pods": 2, "cpu": "2", "memory": "8Gi", "gpus": 1}]), SPOT, ON_DEMAND, quota("1")], stops=frozenset({QUOTA})),
    Stranger(name="a namespace of another program", reading="The ladder is sound wherever its namespace is made.", word=Word.PROVED, resources=[ladder(), SPOT, ON_DEMAND]),
    Stranger(name="a bad ladder in a namespace of another program", reading="The ladder ends on spot.", word=Word.BROKEN, resources=[ladder(SPOT_TIER), SPOT, ON_DEMAND], stops=frozenset({END})),
    Stranger(name="pools of another program", reading="Nothing here shows the pools.", word=Word.NOT_JUDGED, resources=training()),
    Stranger(name="no ladder", reading="The namespace is for training and has nowhere to fall back to.", word=Word.BROKEN, resources=[namespace(), SPOT, ON_DEMAND], stops=frozenset({END})),
    Stranger(name="managed node groups", reading="They are pools, if a cluster autoscaler adds nodes.", word=Word.ASSUMED, resources=[*training(), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND")]),
    Stranger(name="a managed node group of fixed size", reading="Its nodes are there before a job needs them.", word=Word.PROVED, resources=[*training(), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND", scalingConfig={"minSize": 4.0, "maxSize": 4.0})]),
    Stranger(name="a cluster autoscaler for the spot group alone", reading="The program's autoscaler lists its groups, and not the last one; another may run.", word=Word.NOT_JUDGED, resources=[*training(), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND"), SPOT_SCALER]),
    Stranger(name="a launch template without fabric adapters", reading="Nothing attaches the adapters that the gang requests.", word=Word.BROKEN, resources=with_adapters({"deviceIndex": 0.0}), stops=frozenset({REACH})),
    Stranger(name="a launch template with fabric adapters", reading="Both groups take the gang.", word=Word.ASSUMED, resources=with_adapters({"interfaceType": "efa"})),
    Stranger(name="a launch template of another program", reading="Whether it attaches adapters is not shown here.", word=Word.NOT_JUDGED, resources=with_adapters(named="shared")),
    Stranger(name="an image without a GPU driver", reading="No node has a GPU unless another program installs the driver.", word=Word.NOT_JUDGED, resources=[*training(), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND", amiType="AL2023_x86_64_STANDARD")]),
    Stranger(name="NodePools of a class that is not made", reading="Karpenter makes no node for them, if no other program makes the class.", word=Word.NOT_JUDGED, resources=[*training(), SPOT, ON_DEMAND, node_class("EC2NodeClass", "gpus")]),
    Stranger(name="any capacity type but spot", reading="Reserved and on-demand are no spot.", word=Word.PROVED, resources=[*training(), SPOT, node_pool("on-demand", G5, NOT_SPOT)]),
    Stranger(name="a spot node group last", reading="The ladder ends on spot.", word=Word.BROKEN, resources=[*training(SPOT_TIER), node_group("spot", "SPOT"), node_group("on-demand", "ON_DEMAND")], stops=frozenset({END})),
    Stranger(name="Auto Mode alone", reading="Its built-in pools train nothing.", word=None, resources=[AUTO]),
    Stranger(name="on-demand in another cluster", reading="The pool of the other cluster is no way out, and another program may make one here.", word=Word.NOT_JUDGED, resources=[EAST, WEST, to(EAST), to(WEST), *IN_EAST, *of_provider(to(WEST), ON_DEMAND)]),
    Stranger(name="a small quota of the same namespace in another cluster", reading="The quota of the other cluster counts no pods of this one.", word=Word.PROVED, resources=[EAST, WEST, to(EAST), to(WEST), *IN_EAST, *of_provider(to(EAST), ON_DEMAND), *of_provider(to(WEST), quota("0"))]),
    Stranger(name="Karpenter with checkpoints beside it", reading="The ladder is sound; chart, bucket and role are not.", word=Word.PROVED, resources=[*training(), SPOT, ON_DEMAND, *PLATFORM]),
    Stranger(name="a built-in pool of Auto Mode last", reading="Its nodes have no label that jobs select, and EKS does not let it be changed.", word=Word.BROKEN, resources=[AUTO, *training(SPOT_TIER, {"pool": "general-purpose"}), SPOT, ON_DEMAND], stops=frozenset({END})),
    Stranger(name="a reserved pool without a reservation", reading="Karpenter makes no reserved node for a class that names no reservation.", word=Word.BROKEN, resources=[*training(SPOT_TIER, {"pool": "reserved", "maxFailures": -1}), SPOT, node_pool("reserved", G5, kinds=["reserved"]), CLASS], stops=frozenset({REACH})),
    Stranger(name="an image that is no longer made", reading="Amazon Linux 2 ends with Kubernetes 1.32.", word=Word.BROKEN, resources=[*training(), SPOT, ON_DEMAND, OLD_IMAGE, NEW_CLUSTER], stops=frozenset({REACH})),
    Stranger(name="a startup taint", reading="What sets the node up removes it, if it does so on the machines of this tier, too.", word=Word.ASSUMED, resources=[*training(), SPOT, STARTING]),
    Stranger(name="a patch that makes an on-demand pool spot", reading="Which of both holds depends on forced conflicts and later updates.", word=Word.NOT_JUDGED, resources=[*training(), SPOT, ON_DEMAND, patched("on-demand", template={"requirements": [G5, one_of("karpenter.sh/capacity-type", "spot")]})]),
    Stranger(name="a patch that limits an on-demand pool", reading="16 pods of 4 GPUs need 64, and the patch leaves 16.", word=Word.BROKEN, resources=[*training(shapes=[WIDE]), SPOT, ON_DEMAND, patched("on-demand", limits={"nvidia.com/gpu": "16"})], stops=frozenset({REACH})),
    Stranger(name="a patched pool of another program", reading="The patch gives it the label, and nothing shows the rest.", word=Word.NOT_JUDGED, resources=[*training(SPOT_TIER, {"pool": "shared"}), SPOT, patched("shared")]),
    Stranger(name="a patched ladder of another program", reading="A patch does not show the tiers.", word=Word.NOT_JUDGED, resources=[*LABELLED, SPOT, ON_DEMAND]),
    Stranger(name="no shapes", reading="Nothing says what jobs request, so one machine stands for them.", word=Word.ASSUMED, resources=[*training(shapes=[]), SPOT, ON_DEMAND]),
    Stranger(name="a job larger than any machine", reading="No machine of the pool has 900 CPUs.", word=Word.BROKEN, resources=[*training(shapes=[{"name": "huge", "pods": 1, "cpu": "900", "memory": "8Gi", "gpus": 1}, SMALL]), SPOT, ON_DEMAND], stops=frozenset({REACH})),
)  # fmt: skip
