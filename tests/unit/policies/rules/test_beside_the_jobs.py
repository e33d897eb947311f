"""What keeps jobs from running on sound pools: the namespace, what stands beside them, and the network of their machines."""

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import CAPACITY_TYPE, INSTANCE_TYPE, POOL
from pulumi_holdfast.program.resources import StackResource, Value
from rule import PACK_DEFAULTS
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import stopping
from tests.support.builders.program_jobs import cpu_pool, declared_jobset, job_program
from tests.support.builders.stack_resources import A100, A100_SPOT, gke_pools, ladder, namespace, resource

NETWORK_POLICY = "kubernetes:networking.k8s.io/v1:NetworkPolicy"
BOTH: Value = ["Ingress", "Egress"]
WITHIN: Value = [{"podSelector": {}}]
SPOT: Value = {"nodeSelector": {CAPACITY_TYPE: "spot"}}
_ALL_JOBS: Value = "kind: Configuration\nmanageJobsWithoutQueueName: true\n"
MANAGING: Value = {"managerConfig": {"controllerManagerConfigYaml": _ALL_JOBS}}
LEAVING_OUT: Value = {"managerConfig": {"controllerManagerConfigYaml": f"{_ALL_JOBS}managedJobsNamespaceSelector: {{matchExpressions: [{{key: holdfast.dev/training, operator: DoesNotExist}}]}}"}}  # fmt: skip
ACCOUNT: Json = {"serviceAccountName": "trainer"}


def inside(type_token: str, name: str, *, where: str = "vision", **props: Value) -> StackResource:
    """An object of a namespace."""
    return resource(type_token, name, {"metadata": {"name": name, "namespace": where}, **props})


def closing(**spec: Value) -> StackResource:
    return inside(NETWORK_POLICY, "closed", spec={"podSelector": {}, **spec})


def leaving(*rules: Value) -> StackResource:
    """A network policy that opens egress between the pods of its namespace, and by these rules."""
    return closing(policyTypes=["Egress"], egress=[{"to": WITHIN}, *rules])


def to(port: int, **ports: Value) -> Value:
    return {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": port, **ports}]}


def chart(name: str, values: Value) -> StackResource:
    return resource(
        "kubernetes:helm.sh/v3:Release", name, {"chart": f"oci://charts/{name}", "values": values}
    )


def serving(replicas: int, pool: str = "cpu") -> StackResource:
    pod: Value = {"nodeSelector": {POOL: pool}, "containers": [{"resources": {"requests": {"cpu": "3"}}}]}
    return inside("kubernetes:apps/v1:Deployment", "serving", where="web", spec={"replicas": replicas, "template": {"spec": pod}})  # fmt: skip


@pytest.mark.parametrize(("default", "value", "stops"), [(True, -100, True), (True, 0, False), (False, -100, False)])  # fmt: skip
def test_default_priority_is_that_of_pods_without_a_class(
    default: Value, value: Value, *, stops: bool
) -> None:
    name: Value = {"name": "best-effort"}
    priority = resource(
        "kubernetes:scheduling.k8s.io/v1:PriorityClass",
        "best-effort",
        {"metadata": name, "globalDefault": default, "value": value},
    )
    pools = [
        replace(each, props={**each.props, "autoscaling": {"totalMaxNodeCount": 4.0}}) for each in gke_pools()
    ]
    made = ladder()
    spec: Value = {"tiers": [A100_SPOT, A100], "shapes": [{"name": "small", "cpu": "1", "memory": "1Gi"}]}
    declared = replace(made, props={**made.props, "spec": spec})
    found = str(stopping([namespace(), declared, *pools, priority]))
    assert ("a priority below -10" in found) is stops, f"the autoscaler makes them no node: {found}"
    assert not stopping([namespace(), made, *pools, priority]), "jobs without shapes may name a class"


def on_terms(*kinds: str) -> Value:
    """Values of a chart whose pods require one of these capacity types, each in a term of its own."""
    terms: Value = [{"matchExpressions": [{"key": CAPACITY_TYPE, "operator": "In", "values": [each]}]} for each in kinds]  # fmt: skip
    required: Value = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    return {"affinity": {"nodeAffinity": required}}


def on_system(values: Value) -> Value:
    return {"affinity": {"nodeAffinity": {"required": [{"key": "role", "operator": "In", "values": values}]}}}


ON_SYSTEM = on_system(["system"])
SYSTEM, SYSTEM_ON_SPOT = (
    resource("aws:eks/nodeGroup:NodeGroup", kind, {"capacityType": kind, "labels": {"role": "system"}})
    for kind in ("ON_DEMAND", "SPOT")
)

BESIDE: Sequence[tuple[str, Sequence[StackResource], Json, Word, str]] = (
    ("a closed network", [closing(policyTypes=BOTH)], {}, Word.NOT_JUDGED, "closes egress of all pods"),
    ("a closed network that is opened", [closing(policyTypes=["Ingress"]), inside(NETWORK_POLICY, "open", spec={"podSelector": {}, "ingress": [{"from": WITHIN}]})], {}, Word.PROVED, ""),
    ("a network that is open to addresses alone", [closing(ingress=[{"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}])], {}, Word.NOT_JUDGED, "closes ingress"),
    ("a network that is open to another namespace alone", [closing(ingress=[{"from": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "web"}}}]}])], {}, Word.NOT_JUDGED, "closes ingress"),
    ("a network without DNS", [leaving(to(443))], {}, Word.NOT_JUDGED, "for DNS, port 53"),
    ("a network with DNS alone", [leaving(to(53))], {}, Word.NOT_JUDGED, "for more than DNS"),
    ("a network with DNS and checkpoints", [leaving(to(53), to(443))], {}, Word.PROVED, ""),
    ("a network with a range of ports", [leaving(to(1, endPort=1023))], {}, Word.PROVED, ""),
    ("a network that is open to all", [leaving({})], {}, Word.PROVED, ""),
    ("a policy of Cilium", [inside("kubernetes:cilium.io/v2:CiliumNetworkPolicy", "closed", spec={"endpointSelector": {}, "ingress": [{}]})], {}, Word.NOT_JUDGED, "CiliumNetworkPolicy 'closed' lets its pods reach"),
    ("a policy of Cilium elsewhere", [inside("kubernetes:cilium.io/v2:CiliumNetworkPolicy", "closed", where="web", spec={"endpointSelector": {}})], {}, Word.PROVED, ""),
    ("a policy of Cilium for all", [resource("kubernetes:cilium.io/v2:CiliumClusterwideNetworkPolicy", "closed", {"spec": {"endpointSelector": {}}})], {}, Word.NOT_JUDGED, "lets its pods reach"),
    ("a policy of Cilium for another namespace", [resource("kubernetes:cilium.io/v2:CiliumClusterwideNetworkPolicy", "closed", {"spec": {"endpointSelector": {"matchLabels": {"k8s:io.kubernetes.pod.namespace": "web"}}}})], {}, Word.PROVED, ""),
    ("a policy of Calico that is staged", [resource("kubernetes:projectcalico.org/v3:StagedGlobalNetworkPolicy", "closed", {"spec": {}})], {}, Word.PROVED, ""),
    ("a policy for other namespaces", [resource("kubernetes:policy.networking.k8s.io/v1alpha2:ClusterNetworkPolicy", "closed", {"spec": {"subject": {"namespaces": {"matchLabels": {"tier": "web"}}}}})], {}, Word.PROVED, ""),
    ("a Kueue that suspends all jobs", [chart("kueue", MANAGING)], {}, Word.NOT_JUDGED, "Kueue suspends jobs without a queue"),
    ("a Kueue that leaves out training", [chart("kueue", LEAVING_OUT)], {}, Word.PROVED, ""),
    ("a closed network of some pods", [inside(NETWORK_POLICY, "web", spec={"podSelector": {"matchLabels": {"app": "web"}}})], {}, Word.PROVED, ""),
    ("an operator that requires spot", [chart("jobset", {"controller": on_terms("spot", "spot")})], {}, Word.NOT_JUDGED, "the operator jobset selects spot"),
    ("an operator that may be on spot", [chart("jobset", {"controller": on_terms("spot", "on-demand")})], {}, Word.PROVED, ""),
    ("an operator on spot", [chart("jobset", {"controller": SPOT})], {}, Word.NOT_JUDGED, "the operator jobset selects spot"),
    ("Karpenter without pods", [chart("karpenter", {"replicas": 0.0})], {}, Word.NOT_JUDGED, "the operator karpenter has `replicas: 0`"),
    ("JobSet without pods", [chart("jobset", {"controller": {"replicas": 0}})], {}, Word.NOT_JUDGED, "the operator jobset has `replicas: 0`"),
    ("Karpenter with pods", [chart("karpenter", {"replicas": 2})], {}, Word.PROVED, "it reaches tier 2"),
    ("the fallback controller without pods", [resource("kubernetes:apps/v1:Deployment", "controller", {"metadata": {"name": "fallback-controller", "namespace": "holdfast-system"}, "spec": {"replicas": 0}})], {}, Word.NOT_JUDGED, "Deployment fallback-controller has `replicas: 0`"),
    ("an operator on the pool of spot", [chart("jobset", {"controller": {"nodeSelector": {POOL: "cpu-spot"}}})], {}, Word.NOT_JUDGED, "the operator jobset selects spot"),
    ("an operator on the NodePool of spot", [chart("jobset", {"controller": {"nodeSelector": {"karpenter.sh/nodepool": "cpu-spot"}}})], {}, Word.NOT_JUDGED, "the operator jobset selects spot"),
    ("an operator on a node group of spot", [SYSTEM_ON_SPOT, chart("karpenter", ON_SYSTEM)], {}, Word.NOT_JUDGED, "the operator karpenter selects spot"),
    ("an operator on nodes that only the update knows", [SYSTEM_ON_SPOT, chart("karpenter", on_system(UNKNOWN))], {}, Word.PROVED, ""),
    ("an operator that may be on-demand", [SYSTEM_ON_SPOT, SYSTEM, chart("karpenter", ON_SYSTEM)], {}, Word.PROVED, ""),
    ("an operator with the labels of a node group", [SYSTEM_ON_SPOT, chart("karpenter", {"podLabels": {"role": "system"}})], {}, Word.PROVED, ""),
    ("an operator on the other pool", [chart("jobset", {"controller": {"nodeSelector": {POOL: "cpu"}}})], {}, Word.PROVED, ""),
    ("an operator elsewhere", [chart("jobset", {"controller": {"nodeSelector": {"role": "system"}}})], {}, Word.PROVED, ""),
    ("another chart on spot", [chart("dashboard", SPOT)], {}, Word.PROVED, ""),
    ("an account of another namespace", [inside("kubernetes:core/v1:ServiceAccount", "trainer", where="old")], ACCOUNT, Word.NOT_JUDGED, "ServiceAccount trainer"),
    ("an account of the namespace", [inside("kubernetes:core/v1:ServiceAccount", "trainer")], ACCOUNT, Word.PROVED, ""),
    ("pods that take a day to end", [], {"terminationGracePeriodSeconds": 86400}, Word.NOT_JUDGED, "86400 seconds to end"),
    ("pods that take minutes to end", [], {"terminationGracePeriodSeconds": 110}, Word.PROVED, ""),
    ("a Deployment on all nodes", [serving(4)], {}, Word.NOT_JUDGED, "leaves room beside Deployment 'serving'"),
    ("a Deployment that leaves room", [serving(3)], {}, Word.PROVED, ""),
    ("a Deployment on another pool", [serving(4, "other")], {}, Word.PROVED, ""),
)  # fmt: skip


@pytest.mark.parametrize(("beside", "pod", "word", "reason"), [each[1:] for each in BESIDE], ids=[each[0] for each in BESIDE])  # fmt: skip
def test_job_is_not_proved_beside_what_keeps_it_from_running(
    beside: Sequence[StackResource], pod: Json, word: Word, reason: str
) -> None:
    program = [*job_program(declared_jobset(pod)), *beside]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True), str(of_job)
    assert stopping(program) == {}, "another program may add what is missing"


CLUSTER: Value = {"name": "lab", "version": "1.34", "accessConfig": {"authenticationMode": "API"}}
LAB: Value = [{"tags": {"discovery": "lab"}}]


def aws(kind: str, **props: Value) -> StackResource:
    return resource(f"aws:{kind}", kind.rpartition(":")[2], {"tags": {"discovery": "lab"}, **props})


def subnet(block: str) -> StackResource:
    return aws("ec2/subnet:Subnet", availabilityZone="us-west-2c", cidrBlock=block)


def firewall(**rule: Value) -> StackResource:
    return aws("ec2/securityGroup:SecurityGroup", ingress=[{"protocol": "-1", **rule}])


def entry(role: str) -> StackResource:
    return aws("eks/accessEntry:AccessEntry", principalArn=f"arn:aws:iam::111122223333:role/{role}")


def buying(effect: str, key: str, *actions: str) -> Value:
    """A statement about buying machines for which a condition holds."""
    return {"Effect": effect, "Action": [*actions], "Resource": "*", "Condition": {"StringNotEquals": {key: "spot"}}}  # fmt: skip


def policy_of(*statements: Value) -> StackResource:
    return aws("iam/rolePolicy:RolePolicy", policy=json.dumps({"Statement": [*statements]}))


def deny(key: str) -> StackResource:
    return policy_of(buying("Deny", key, "ec2:RunInstances"))


SPOT_ONLY = buying("Allow", "ec2:InstanceMarketType", "ec2:RunInstances", "ec2:CreateFleet")
SMALL_ONLY = buying("Allow", "ec2:InstanceType", "ec2:RunInstances")
ANY: Value = {"Effect": "Allow", "Action": "ec2:*", "Resource": "*"}
BOUND: Value = [{"name": "spot", "policy": json.dumps({"Statement": buying("Deny", "ec2:InstanceMarketType", "ec2:Run*")})}]  # fmt: skip


ROLE = aws("iam/role:Role", name="nodes")
NEEDED = ("AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly")


def attached(policy: str, account: str = "aws") -> StackResource:
    """A policy that the role of the machines has."""
    arn = f"arn:aws:iam::{account}:policy/{policy}"
    made = aws("iam/rolePolicyAttachment:RolePolicyAttachment", role="nodes", policyArn=arn)
    return replace(made, urn=f"{made.urn}-{policy}")


def allowing(*actions: str) -> StackResource:
    policy = json.dumps({"Statement": [{"Effect": "Allow", "Action": [*actions], "Resource": "*"}]})
    return aws("iam/rolePolicy:RolePolicy", role="nodes", policy=policy)


def network_of(zone: str) -> StackResource:
    return inside("kubernetes:crd.k8s.amazonaws.com/v1alpha1:ENIConfig", zone)


def on_ec2(spec: dict[str, Value], *kinds: str) -> list[StackResource]:
    """A ladder on machines of EC2 whose class has this specification; `kinds` are those of its last tier."""
    reference: Value = {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"}

    def pool(name: str, *capacity: str) -> StackResource:
        required: list[Value] = [
            {"key": key, "operator": "In", "values": list(values)}
            for key, values in (
                (CAPACITY_TYPE, capacity),
                (INSTANCE_TYPE, ("m7i.xlarge",)),
                ("topology.kubernetes.io/zone", ("us-west-2c",)),
            )
        ]
        return cpu_pool(name, "", nodeClassRef=reference, requirements=required)

    node_class = resource("kubernetes:karpenter.k8s.aws/v1:EC2NodeClass", "default", {"metadata": {"name": "default"}, "spec": spec})  # fmt: skip
    last: Value = {"pool": "cpu"} if not kinds or "on-demand" in kinds else {"pool": "cpu", "maxFailures": -1}
    tiers: Value = [{"pool": "cpu-spot", "maxFailures": 5, "procurementTimeout": "15m"}, last]
    return [
        namespace(),
        ladder(tiers),
        pool("cpu-spot", "spot"),
        pool("cpu", *(kinds or ("on-demand",))),
        node_class,
    ]


CUSTOM = aws("eks/addon:Addon", configurationValues='{"env": {"AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "true", "ENI_CONFIG_LABEL_DEF": "topology.kubernetes.io/zone"}}')  # fmt: skip
EKS = aws("eks/cluster:Cluster", **CLUSTER)
SERVE = replace(
    aws("eks/cluster:Cluster", name="serve"), urn="urn:pulumi:lab::lab::aws:eks/cluster:Cluster::serve"
)
OLDER = aws("eks/cluster:Cluster", **{**CLUSTER, "version": "1.32"})
AL2023: Value = [{"alias": "al2023@v20251016"}]
BOTTLEROCKET: Value = [{"alias": "bottlerocket@1.49.0"}]
SMALL_DISK: Value = [{"deviceName": "/dev/xvda", "ebs": {"volumeSize": "8Gi"}}]
AL2: Value = [{"alias": "al2@v20250701"}]
MACHINES: Sequence[tuple[str, dict[str, Value], Sequence[StackResource], Word, str]] = (
    ("few addresses", {"subnetSelectorTerms": LAB}, [subnet("10.0.0.0/28")], Word.NOT_JUDGED, "have 11 addresses"),
    ("many addresses", {"subnetSelectorTerms": LAB}, [subnet("10.0.0.0/20")], Word.PROVED, ""),
    ("a firewall between machines", {"securityGroupSelectorTerms": LAB}, [firewall(securityGroups=["sg-1"])], Word.NOT_JUDGED, "let in neither each other"),
    ("a firewall that lets in the group", {"securityGroupSelectorTerms": LAB}, [firewall(self=True)], Word.PROVED, ""),
    ("no network in the zone", {}, [CUSTOM, network_of("us-west-2a")], Word.NOT_JUDGED, "makes none for us-west-2c"),
    ("a network in the zone", {}, [CUSTOM, network_of("us-west-2c")], Word.PROVED, ""),
    ("a role without access", {"role": "nodes"}, [EKS, entry("others")], Word.NOT_JUDGED, "the role 'nodes'"),
    ("a role with access", {"role": "nodes"}, [EKS, entry("nodes")], Word.PROVED, ""),
    ("a role that may not read images", {"role": "nodes"}, [ROLE, attached("AmazonEKSWorkerNodePolicy")], Word.NOT_JUDGED, "read images from ECR"),
    ("a role that may not join", {"role": "nodes"}, [ROLE, attached("AmazonEC2ContainerRegistryPullOnly")], Word.NOT_JUDGED, "do not join the cluster"),
    ("a role that may do both", {"role": "nodes"}, [ROLE, *map(attached, NEEDED)], Word.PROVED, ""),
    ("a role that may do everything", {"role": "nodes"}, [ROLE, attached("AdministratorAccess")], Word.PROVED, ""),
    ("a role with a policy of the account", {"role": "nodes"}, [ROLE, attached("nodes", "111122223333")], Word.PROVED, ""),
    ("a role with a policy that is not known yet", {"role": "nodes"}, [ROLE, aws("iam/rolePolicy:RolePolicy", role="nodes", policy=UNKNOWN)], Word.PROVED, ""),
    ("a role with policies of its own", {"role": "nodes"}, [ROLE, allowing("ecr:BatchGetImage", "ec2:Describe*")], Word.PROVED, ""),
    ("a role with policies for other things", {"role": "nodes"}, [ROLE, allowing("s3:*", "ec2:Describe*")], Word.NOT_JUDGED, "read images from ECR"),
    ("a role of another program", {"role": "other"}, [ROLE], Word.PROVED, ""),
    ("a policy that denies on-demand", {}, [deny("ec2:InstanceMarketType")], Word.NOT_JUDGED, "RolePolicy"),
    ("a role whose own policy denies on-demand", {}, [aws("iam/role:Role", inlinePolicies=BOUND)], Word.NOT_JUDGED, "Role"),
    ("a policy of a provisioner that allows some only", {}, [policy_of(SPOT_ONLY)], Word.NOT_JUDGED, "allows machines by ec2:InstanceMarketType"),
    ("a policy of a provisioner that allows all", {}, [policy_of(SPOT_ONLY, ANY)], Word.PROVED, ""),
    ("a policy of people that allows some only", {}, [policy_of(SMALL_ONLY)], Word.PROVED, ""),
    ("a policy that denies types", {}, [deny("ec2:InstanceType")], Word.NOT_JUDGED, "by ec2:InstanceType"),
    ("a disk smaller than the image", {"amiSelectorTerms": AL2023, "blockDeviceMappings": SMALL_DISK}, [], Word.NOT_JUDGED, "its root volume of 8Gi"),
    ("a disk smaller than another image", {"amiSelectorTerms": BOTTLEROCKET, "blockDeviceMappings": SMALL_DISK}, [], Word.PROVED, ""),
    ("a policy that denies other regions", {}, [deny("aws:RequestedRegion")], Word.PROVED, ""),
    ("an image that is no longer made", {"amiSelectorTerms": AL2}, [EKS], Word.BROKEN, "no image for Kubernetes 1.34"),
    ("an image that is made", {"amiSelectorTerms": AL2}, [OLDER], Word.PROVED, ""),
)  # fmt: skip


@pytest.mark.parametrize(("spec", "beside", "word", "reason"), [each[1:] for each in MACHINES], ids=[each[0] for each in MACHINES])  # fmt: skip
def test_job_is_not_proved_on_machines_that_do_not_join_or_do_not_meet(
    spec: dict[str, Value], beside: Sequence[StackResource], word: Word, reason: str
) -> None:
    program = [*on_ec2(spec), *beside, declared_jobset({})]
    (found,) = verdicts(program, PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert (of_job.word, reason in of_job.reason) == (word, True), str(of_job)
    assert bool(stopping(program)) is (word is Word.BROKEN), "only what is certain stops a run"


def test_policy_that_denies_on_demand_counts_for_a_node_class_of_another_program() -> None:
    *without_class, _ = on_ec2({})
    (found,) = verdicts([*without_class, deny("ec2:InstanceMarketType")], PACK_DEFAULTS)
    assert found.word is Word.NOT_JUDGED, "Karpenter buys with the rights of its own role, whatever the class"
    assert "denies machines by ec2:InstanceMarketType" in str(found), "the line names the policy"


@pytest.mark.parametrize(("tag", "word"), [("serve", Word.NOT_JUDGED), ("lab", Word.PROVED)])
def test_job_is_not_proved_on_machines_in_the_security_group_of_another_cluster(tag: str, word: Word) -> None:
    to = replace(resource("pulumi:providers:kubernetes", "to", {}), refers_to={"kubeconfig": (EKS.urn,)})
    machines = on_ec2({"securityGroupSelectorTerms": [{"tags": {"discovery": tag}}]})
    objects = [replace(each, provider=to.urn) for each in [*machines, declared_jobset({})]]
    (found,) = verdicts([EKS, SERVE, to, *objects], PACK_DEFAULTS)
    of_job = next(each for each in found.parts if each.about == "JobSet 'train'")
    assert of_job.word is word, str(of_job)


@pytest.mark.parametrize(
    ("kinds", "terms", "stops"),
    [
        (["reserved"], None, True),
        (["reserved"], [{"id": "cr-1"}], False),
        (["reserved", "on-demand"], None, False),
    ],
    ids=["no reservation", "a reservation", "on-demand, too"],
)
def test_reserved_pool_whose_class_names_no_reservation_stops_the_run(
    kinds: Sequence[str], terms: Value, stops: bool
) -> None:
    program = [*on_ec2({"capacityReservationSelectorTerms": terms}, *kinds), declared_jobset({})]
    found = [each for listed in stopping(program).values() for each in listed]
    assert all("Set `capacityReservationSelectorTerms`" in each for each in found), str(found)
    assert bool(found) is stops, "Karpenter makes no node for it"
