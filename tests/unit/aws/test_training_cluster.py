"""The resources of AWS stacks: roles, versions, nodes, checkpoints, protection, tags."""

import json
from typing import cast

import pytest

from pulumi_holdfast.aws.control_plane.access import Caller
from pulumi_holdfast.config import versions
from pulumi_holdfast.kubernetes.outputs import CHECKPOINT_KEYS, OUTPUTS
from pulumi_holdfast.ladder.errors import ConfigError
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.clouds.catalogue import recorded_replacing
from tests.support.builders.aws_stacks import (
    ISSUER,
    ON_PREM,
    PLATFORMS,
    composed,
    make,
    stack,
    without_spot_role,
)
from tests.support.builders.configurations import Document, aws_platform, entry, list_of, section
from tests.support.fakes.aws_account import KEY, LOG_GROUPS, QUOTA, SPOT_ROLE, TAGGED, answers
from tests.support.fakes.iam_evaluation import Request, is_allowed
from tests.support.fakes.other_stack import OtherStack
from tests.support.fakes.pulumi_engine import Recording, record
from tests.support.inputs import mapping, objects, text, value
from tests.support.json_objects import obj
from tests.support.published import Published

DEPLOYER = "arn:aws:iam::123456789012:role/deployer"

every_stack = pytest.mark.parametrize("name", PLATFORMS)


@every_stack
def test_every_pool_starts_its_nodes_with_the_taint_that_the_stacks_own_driver_removes(name: str) -> None:
    recording = stack(name)
    assert value(recording.one(":Addon", "main-cluster-services-ebs"), "addonName") == "aws-ebs-csi-driver"
    taint = {"key": "ebs.csi.aws.com/agent-not-ready", "value": "true", "effect": "NoExecute"}
    pools = recording.of(":NodePool")
    assert pools
    assert all(objects(pool, "spec", "template", "spec", "startupTaints") == [taint] for pool in pools)


BOUNDARY = "arn:aws:iam::123456789012:policy/boundary"
SECRETS_KEY = "arn:aws:kms:us-west-2:123456789012:key/01234567-89ab-cdef-0123-456789abcdef"


def _customize(document: Document) -> None:
    document.update(
        access=[{"principal": DEPLOYER, "namespaces": ["vision"], "role": "submit"}],
        iam={"permissionsBoundary": BOUNDARY, "path": "/teams/ml/"},
    )
    section(document, "cluster").update(
        secretsKey=SECRETS_KEY, upgradePolicy="standard", logs={"types": ["audit"], "retainDays": 400}
    )


def _with_log_group(token: str, arguments: Json) -> Json:
    """What an account answers in which EKS has left the log group of a cluster of this name."""
    names = {"logGroupNames": ["/aws/eks/holdfast-aws-test/cluster"]}
    return names if token == LOG_GROUPS else answers(token, arguments)


def customized() -> Recording:
    """A stack with access, roles, a key and logs as they are configured, by a caller with a profile."""
    return composed(
        aws_platform(_customize), caller=Caller(profile="training", role_arn=DEPLOYER), answer=_with_log_group
    )


SPOT_ROLE_TYPE = ":ServiceLinkedRole"


@every_stack
def test_system_nodes_and_karpenters_nodes_have_separate_roles(name: str) -> None:
    recording = stack(name)
    system = text(recording.one(":NodeGroup"), "nodeRoleArn")
    entries = [found for found in recording.of(":AccessEntry") if value(found, "type") == "EC2_LINUX"]
    (admitted,) = [text(found, "principalArn") for found in entries]
    assert admitted.endswith(":main-karpenter-node-role"), "Karpenter's nodes are let in by us"
    assert system.endswith(":main-cluster-system-iam-role"), "EKS lets the nodes of its own group in"
    for node_class in recording.of(":EC2NodeClass"):
        own = value(node_class, "spec", "role") or value(node_class, "spec", "instanceProfile")
        assert str(own).startswith("main-karpenter-node-"), "pods do not get the permissions of operators"


def test_an_existing_spot_role_is_imported_and_a_missing_one_created() -> None:
    without = composed(aws_platform(), answer=without_spot_role)
    assert without.one(SPOT_ROLE_TYPE).import_id == ""
    assert stack("aws-dev").one(SPOT_ROLE_TYPE).import_id == SPOT_ROLE, "a second one cannot be made"


def test_preflight_problems_stop_the_program_before_any_part_is_registered() -> None:
    def poor(token: str, arguments: Json) -> Json:
        return {"value": 0.0} if token == QUOTA else answers(token, arguments)

    refused: list[ConfigError] = []

    def attempt() -> None:
        try:
            make(aws_platform(), "aws-test")
        except ConfigError as error:
            refused.append(error)

    recording = record(attempt, answer=poor)
    assert "quota" in str(refused), "EC2 would answer as if it were out of stock"
    assert [each.type for each in recording] == ["holdfast:aws:TrainingCluster"], (
        "a half-made stack would have to be cleaned up by hand"
    )


def test_all_nodes_use_one_image() -> None:
    aliases = {
        text(term, "alias")
        for node_class in stack("aws-prod").of(":EC2NodeClass")
        for term in objects(node_class, "spec", "amiSelectorTerms")
    }
    assert aliases == {f"al2023@v{versions.NODE_IMAGE_RELEASE}"}, "the newest image would be a drift"
    release = text(stack("aws-prod").one(":NodeGroup"), "releaseVersion")
    assert release == f"{versions.NODE_IMAGE_KUBELET}-{versions.NODE_IMAGE_RELEASE}"


@pytest.mark.parametrize("namespace", ["vision", "tabular"])
def test_jobs_have_the_checkpoint_address_and_write_access(namespace: str) -> None:
    recording = stack("aws-prod")
    address = text(
        recording.one(":ConfigMap", f"main-namespace-{namespace}-checkpoints"), "data", "CHECKPOINT_URI"
    )
    assert address == f"s3://main-checkpoints-{namespace}-bucket-0a1b2c3/{namespace}"
    account = recording.one(":ServiceAccount", f"main-namespace-{namespace}-trainer")
    association = recording.one(
        ":PodIdentityAssociation", f"main-checkpoint-access-of-{namespace}-association"
    )
    assert text(association, "serviceAccount") == text(account, "metadata", "name"), "the account of jobs"
    assert text(association, "namespace") == namespace, "of this namespace alone"
    policy = text(recording.one(":RolePolicy", f"main-checkpoint-access-of-{namespace}-policy"), "policy")
    assert f":main-checkpoints-{namespace}-bucket/*" in policy


def test_the_kubeconfig_has_the_clusters_name_and_the_aws_profile() -> None:
    provider = customized().one("providers:kubernetes")
    (user,) = objects(json.loads(text(provider, "kubeconfig")), "users")
    command = mapping(user, "user", "exec")
    assert "holdfast-aws-test" in objects(command, "args")
    assert objects(command, "args")[6:8] == ["--role-arn", DEPLOYER]
    assert command["env"] == [{"name": "AWS_PROFILE", "value": "training"}]


def test_pools_have_their_configured_names_and_order() -> None:
    ranks = {
        text(pool, "metadata", "name"): value(pool, "spec", "weight")
        for pool in stack("aws-dev").of(":NodePool")
    }
    assert sorted(ranks, key=lambda name: -int(str(ranks[name]).removesuffix(".0"))) == ["cpu", "cpu-spot"]


def test_a_spot_pool_with_few_machine_types_or_different_accelerators_causes_a_warning() -> None:
    def change(document: Document) -> None:
        few = {**entry(document, "pools", 2), "name": "few", "instanceTypes": ["g6.12xlarge", "g6.24xlarge"]}
        list_of(document, "pools").append(few)
        entry(document, "pools", 2).update(instanceTypes=["g6.12xlarge", "g6.48xlarge", "g5.12xlarge"])

    said = composed(aws_platform(change)).logged
    for pool, warning in (("few", "fewer than 3"), ("a100-spot", "accelerators")):
        about = [line for line in said if f"pool {pool} " in line]
        assert any(warning in line for line in about), f"{pool}: the plan says it, and why"


def test_former_keys_stay_with_their_grants_while_new_objects_use_s3s_key() -> None:
    def answer(token: str, arguments: Json) -> Json:
        listed: Json = {
            "resourceTagMappingLists": [{"resourceArn": "arn", "tags": {}, "complianceDetails": []}]
        }
        key: Json = {"arn": "arn", "description": "Checkpoints (main-checkpoints)", "keyState": "Enabled"}
        given: dict[str, Json] = {TAGGED: listed, KEY: key}
        return given.get(token) or answers(token, arguments)

    platform = aws_platform(lambda d: section(d, "checkpoints").update(kms=False))
    recording = composed(platform, answer=answer)
    assert "main-checkpoints-key" in {key.name for key in recording.of(":Key")}, (
        "earlier checkpoints are encrypted with it"
    )
    for encryption in recording.of(":BucketServerSideEncryptionConfiguration"):
        (rule,) = objects(encryption, "rules")
        assert value(rule, "applyServerSideEncryptionByDefault", "sseAlgorithm") == "AES256", (
            "new ones are not"
        )
    policy = text(recording.one(":RolePolicy", "main-checkpoint-access-of-vision-policy"), "policy")
    assert "kms:Decrypt" in policy, "jobs read what they wrote before"
    assert len(composed(platform).of(":Key")) == 1, (
        "a stack that never used a key creates none for checkpoints"
    )


def test_access_is_an_entry_with_groups_and_a_role_in_each_namespace() -> None:
    recording = customized()
    (entry,) = [one for one in recording.of(":AccessEntry") if "kubernetesGroups" in one.inputs]
    assert entry.inputs["kubernetesGroups"] == ["holdfast:vision:submit"], "the principal is a member"
    binding = recording.one(":RoleBinding", "main-roles-in-vision-submit-binding")
    (subject,) = objects(binding, "subjects")
    assert subject["name"] == "holdfast:vision:submit", "which has the role"
    assert value(binding, "metadata", "namespace") == "vision", "in this namespace"
    bound = [each.name for each in recording.of(":RoleBinding") if each.name.startswith("main-roles-in-")]
    assert bound == [binding.name], "and in no other"
    rules = objects(recording.one(":Role", "main-roles-in-vision-submit"), "rules")
    writable = {
        resource
        for rule in rules
        if "create" in str(rule["verbs"])
        for resource in cast("list[str]", rule["resources"])
    }
    assert writable == {"jobsets", "rayjobs", "configmaps"}
    assert not [rule for rule in rules if "secrets" in str(rule["resources"])]


def test_every_role_has_the_boundary_and_the_path_and_karpenter_may_pass_it() -> None:
    recording = customized()
    roles = recording.of("aws:iam/role:Role")
    assert len(roles) >= 6
    for role in roles:
        assert (role.inputs.get("permissionsBoundary"), role.inputs.get("path")) == (
            BOUNDARY,
            "/teams/ml/",
        ), role.name
    others = [each.name for each in recording.resources if each.type != "aws:iam/role:Role"]
    bounded = [
        each.name
        for each in recording.resources
        if {"permissionsBoundary", "permissions_boundary"} & set(each.inputs)
    ]
    assert set(bounded).isdisjoint(others), "nothing but a role has a boundary"
    policy = text(recording.one(":RolePolicy", "main-karpenter-controller-iam-integration"), "policy")
    assert ":role/teams/ml/main-karpenter-node-role" in policy, "an ARN without the path matches no role"
    for role in composed(aws_platform()).of("aws:iam/role:Role"):
        assert not {"permissionsBoundary", "path"} & set(role.inputs), "an explicit default would be a change"


def test_the_control_planes_support_and_logs_are_those_of_the_configuration() -> None:
    cluster = composed(aws_platform()).one(":Cluster")
    assert cluster.inputs["upgradePolicy"] == {"supportType": "EXTENDED"}, "EKS's default, explicitly"
    recording = customized()
    assert value(recording.one(":Cluster"), "upgradePolicy", "supportType") == "STANDARD"
    assert value(recording.one(":Cluster"), "enabledClusterLogTypes") == ["audit"]
    group = recording.one(":LogGroup")
    assert value(group, "retentionInDays") == 400
    assert group.import_id == "/aws/eks/holdfast-aws-test/cluster"
    assert composed(aws_platform()).one(":LogGroup").import_id == ""


def test_a_volume_claim_without_a_class_gets_an_encrypted_volume_in_the_zone_of_its_pod() -> None:
    found = stack("aws-dev").one(":StorageClass")
    assert value(found, "metadata", "annotations", "storageclass.kubernetes.io/is-default-class") == "true"
    assert found.inputs["parameters"] == {"type": "gp3", "encrypted": "true"}
    assert found.inputs["volumeBindingMode"] == "WaitForFirstConsumer"


def test_sick_gpu_nodes_are_replaced() -> None:
    values = mapping(stack("aws-prod").one(":Release", "main-karpenter-operator-controller"), "values")
    assert value(values, "settings", "featureGates", "nodeRepair") is True, "the gate is off by default"


def test_a_named_key_encrypts_the_secrets_instead_of_the_stacks_own() -> None:
    recording = customized()
    assert text(recording.one(":Cluster"), "encryptionConfig", "provider", "keyArn") == SECRETS_KEY
    assert not [one for one in recording.of(":Key") if "control-plane" in one.name]


def test_a_pool_with_adapters_says_what_they_mean_for_gangs() -> None:
    def change(document: Document) -> None:
        entry(document, "pools", 2).update(instanceTypes=["p5e.48xlarge", "p5en.48xlarge"], efa=True)

    recording = composed(aws_platform(change))
    about = [line for line in recording.logged if "fabric adapters" in line]
    assert any("p5e.48xlarge has 32, p5en.48xlarge has 16" in line for line in about)
    assert any("does not cross zones" in line for line in about), "the zone must have capacity for the gang"
    names = {text(each, "metadata", "name") for each in recording.of(":MutatingAdmissionPolicy")}
    assert "training-efa-pods" in names
    assert "training-efa-pods" not in {
        text(each, "metadata", "name") for each in composed(aws_platform()).of(":MutatingAdmissionPolicy")
    }


MARKS = {"app.kubernetes.io/managed-by": "holdfast", "holdfast.dev/stack": "aws-dev"}


def test_instances_have_the_tags_of_the_stack() -> None:
    for node_class in stack("aws-dev").of(":EC2NodeClass"):
        assert mapping(node_class, "spec", "tags").items() >= MARKS.items()
        assert value(node_class, "spec", "tags", "ebs.csi.aws.com/cluster-name") == "holdfast-aws-dev"
    template = stack("aws-dev").one(":LaunchTemplate")
    for specification in objects(template, "tagSpecifications"):
        assert mapping(specification, "tags").items() >= MARKS.items()


def test_operators_have_two_nodes_and_the_api_server_only_the_configured_blocks() -> None:
    for name in PLATFORMS:
        size = value(stack(name).one(":NodeGroup"), "scalingConfig", "desiredSize")
        assert isinstance(size, int | float)
        assert size >= 2
    rules = stack("aws-prod").of(":SecurityGroupIngressRule")
    (rule,) = [found for found in rules if "cluster" in found.name]
    assert value(rule, "cidrIpv4") == "10.48.0.0/16"


def test_cached_registries_have_a_rule_and_an_address_and_only_nodes_of_jobs_fill_them() -> None:
    recording = stack("brought")
    rules = {text(rule, "ecrRepositoryPrefix"): rule for rule in recording.of(":PullThroughCacheRule")}
    assert {prefix: text(rule, "upstreamRegistryUrl") for prefix, rule in rules.items()} == {
        "quay": "quay.io",
        "team/docker-hub": "registry-1.docker.io",
    }, "each upstream has a prefix of its own"
    assert "credentialArn" not in rules["quay"].inputs, "ECR reads it without credentials"
    assert text(rules["team/docker-hub"], "credentialArn").startswith("arn:aws:secretsmanager:us-west-2:"), (
        "Docker Hub needs them"
    )
    policy = recording.one(":RolePolicy", "main-pull-through-cache-nodes")
    assert text(policy, "role").startswith("main-karpenter-node-role"), "jobs run on Karpenter's nodes only"
    for pool in recording.of(":NodePool"):
        assert policy.name in recording.everything_before(pool), "an earlier node could not pull"
    here = "arn:aws:ecr:us-west-2:123456789012:repository/"
    for action in ("ecr:CreateRepository", "ecr:BatchImportUpstreamImage"):
        for name, allowed in (
            ("quay/a/b", True),
            ("team/docker-hub/library/python", True),
            ("team/own", False),
        ):
            found = is_allowed([text(policy, "policy")], Request(action=action, resource=here + name))
            assert found is allowed, f"{action} on {name}: repositories of others are not theirs to fill"
    assert not is_allowed(
        [text(policy, "policy")], Request(action="ecr:PutImage", resource=f"{here}quay/a/b")
    )
    host = "123456789012.dkr.ecr.us-west-2.amazonaws.com"
    assert recording.outputs["pullThroughCache"] == {
        "quay": f"{host}/quay",
        "team/docker-hub": f"{host}/team/docker-hub",
    }
    without = composed(aws_platform())
    assert not without.of(":PullThroughCacheRule")
    assert set(without.outputs) == {*OUTPUTS, CHECKPOINT_KEYS}


def test_a_stack_leaves_for_and_accepts_from_the_clusters_that_it_names() -> None:
    recording = stack("brought")
    account = "us-east-1:system:serviceaccount:holdfast-system:fallback-controller"
    trusted = mapping(recording.one(":IdentityProviderConfig"), "oidc")
    assert trusted["issuerUrl"] == ISSUER
    assert str(trusted["clientId"]).endswith(".eks.amazonaws.com")
    assert trusted["requiredClaims"] == {"sub": account.removeprefix("us-east-1:")}
    assert trusted["usernamePrefix"] == "us-east-1:"
    (bound,) = [each for each in recording.of(":RoleBinding") if "fallback-copies" in each.name]
    assert value(bound, "metadata", "namespace") == "vision"
    assert [subject["name"] for subject in objects(bound, "subjects")] == [account]
    assert account in str(
        recording.one(
            ":ValidatingAdmissionPolicy", "main-fallback-controller-transfers-fallback-copies"
        ).inputs
    ), "what it writes is judged"
    before = recording.everything_before(bound)
    assert "main-fallback-controller-transfers" in before, "from the first moment in which it may write"
    (vision,) = [
        each for each in recording.of(":FallbackPolicy") if value(each, "metadata", "namespace") == "vision"
    ]
    assert [tier.get("cluster") for tier in objects(vision, "spec", "tiers")] == [None, "on-prem", None]
    assert f"audience': '{ON_PREM}" in str(
        recording.one(":Deployment", "main-fallback-controller-deployment").inputs
    ), "the token is for that API server"


def test_accepted_jobs_use_the_checkpoints_of_their_home_and_no_other_bucket() -> None:
    key = "arn:aws:kms:us-east-1:123456789012:key/of-home"
    uris, keys = {"vision": "s3://bucket-of-home/vision"}, {"vision": key}
    roles = {"vision": "arn:aws:iam::123456789012:role/of-jobs-at-home"}
    home = OtherStack(
        {"checkpoints": "another", "checkpointUris": uris, "identities": roles, CHECKPOINT_KEYS: keys}
    )
    accepted = {
        "name": "us-east-1",
        "issuer": ISSUER,
        "namespaces": ["vision"],
        "checkpoints": "acme/holdfast/home",
    }
    recording = composed(aws_platform(lambda document: document.update(acceptsFrom=[accepted])), other=home)
    address = recording.one(":ConfigMap", "main-namespace-vision-checkpoints")
    assert text(address, "data", "CHECKPOINT_URI") == "s3://bucket-of-home/vision", (
        "the address that home has"
    )
    policy = text(recording.one(":RolePolicy", "main-checkpoint-access-of-vision-policy"), "policy")
    assert "arn:aws:s3:::bucket-of-home/*" in policy
    assert key in policy, "and the key of the bucket"
    assert "main-checkpoints-vision" not in policy, "nothing of the stack's own bucket"
    others = [
        each for each in recording.of(":RolePolicy") if "main-checkpoint-access-of-tabular" in each.name
    ]
    assert all("bucket-of-home" not in text(each, "policy") for each in others), (
        "for the named namespaces alone"
    )
    assert home.read == ["acme/holdfast/home"], "it is read by its full name"
    for name, found in (("checkpointUris", uris), (CHECKPOINT_KEYS, keys)):
        assert obj(recording.outputs[name]).items() >= found.items()


@every_stack
def test_every_resource_is_what_the_cloud_publishes_about_its_api(name: str) -> None:
    wrong = Published.of("aws").complaints_of("aws", stack(name))
    assert wrong == [], "AWS would reject the request, or the field is misspelled"


@every_stack
def test_what_replaces_a_resource_is_recorded_for_every_type(name: str) -> None:
    registered = {one.type for one in stack(name) if one.type.startswith("aws:")}
    assert registered <= recorded_replacing().keys()


def test_the_versions_and_the_repair_of_a_stack_file_reach_what_is_registered() -> None:
    def choose(document: Document) -> None:
        document["nodes"] = {"image": "1.36.2-20261101", "repair": False}
        document["cluster"] = {**obj(document["cluster"]), "addons": {"metrics-server": "v0.9.0-eksbuild.2"}}

    recording = composed(aws_platform(choose))
    group = recording.one(":NodeGroup")
    assert text(group, "releaseVersion") == "1.36.2-20261101"
    assert value(group, "nodeRepairConfig", "enabled") is False
    aliases = {str(objects(each, "spec", "amiSelectorTerms")) for each in recording.of(":EC2NodeClass")}
    assert aliases == {"[{'alias': 'al2023@v20261101'}]"}
    karpenter = recording.one(":Release", "main-karpenter-operator-controller")
    assert value(karpenter, "values", "settings", "featureGates", "nodeRepair") is False
    addons = {text(each, "addonName"): text(each, "addonVersion") for each in recording.of(":Addon")}
    assert addons["metrics-server"] == "v0.9.0-eksbuild.2"
    assert addons["coredns"] != "v0.9.0-eksbuild.2"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"nodes": {"image": "1.37.0-20261101"}}, "nodes.image"),
        ({"nodes": {"image": "20261101"}}, "nodes.image"),
        ({"cluster": {"addons": {"metric-server": "v0.9.0-eksbuild.2"}}}, "cluster.addons"),
        ({"cluster": {"addons": {"coredns": "latest"}}}, "cluster.addons"),
    ],
)
def test_a_version_that_eks_cannot_have_is_refused(change: Document, field: str) -> None:
    def apply(document: Document) -> None:
        for name, fields in change.items():
            document[name] = {**obj(document.get(name)), **obj(fields)}

    with pytest.raises(ConfigError) as raised:
        aws_platform(apply)
    assert [problem.field for problem in raised.value.problems] == [f"holdfast:platform.{field}"]
