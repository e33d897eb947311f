"""The `eks:index:Cluster` component: role, security group, control plane, identity provider."""

import json
from collections.abc import Mapping, Sequence

from rehearsal.providers.cloud.construction import Child, Construction
from rehearsal.providers.values import UNKNOWN, Properties, Reference, Value, has_unknown

_CLUSTER_POLICY = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
_TRUST = json.dumps(
    {
        "Version": "2012-10-17",
        "Statement": [
            {
                "Action": ["sts:AssumeRole", "sts:TagSession"],
                "Effect": "Allow",
                "Principal": {"Service": "eks.amazonaws.com"},
            }
        ],
    }
)
# The network the real component takes when it is given none: the account's default VPC.
_DEFAULT_SUBNETS = ("subnet-00000000default01", "subnet-00000000default02")


def construct_cluster(construction: Construction) -> Properties:
    """Register a cluster's parts and return the component's outputs.

    Left out of the real component's parts: the Kubernetes provider in `core`, default node groups and their roles.
    """
    inputs = construction.inputs
    name = construction.name
    role = _role(construction)
    subnets = _subnets(inputs)
    group = None if inputs.get("skipDefaultSecurityGroups") else _security_group(construction)
    cluster = construction.child(
        "aws:eks/cluster:Cluster", f"{name}-eksCluster", _cluster_inputs(inputs, role, group, subnets)
    )
    issuer = _issuer(cluster)
    oidc = _oidc_provider(construction, issuer) if inputs.get("createOidcProvider") is True else None
    kubeconfig = _kubeconfig(cluster)
    return _present(
        {
            "autoModeNodeRoleName": "",
            "clusterIngressRuleId": "",
            "clusterSecurityGroup": _reference(group),
            "clusterSecurityGroupId": _vpc_output(cluster, "clusterSecurityGroupId"),
            "core": {
                "cluster": _reference(cluster),
                "clusterIamRole": _reference(role),
                "endpoint": cluster.outputs.get("endpoint"),
                "instanceRoles": [],
                "kubeconfig": kubeconfig,
                "subnetIds": subnets,
                "vpcId": _vpc_output(cluster, "vpcId"),
            },
            "defaultNodeGroupAsgName": "",
            "eksCluster": _reference(cluster),
            "fargateProfileId": "",
            "fargateProfileStatus": "",
            "instanceRoles": [],
            "kubeconfig": kubeconfig,
            "kubeconfigJson": UNKNOWN if kubeconfig is UNKNOWN else json.dumps(kubeconfig),
            "nodeSecurityGroupId": _vpc_output(cluster, "clusterSecurityGroupId"),
            "oidcIssuer": _without_scheme(issuer),
            "oidcProviderArn": oidc.outputs.get("arn", UNKNOWN) if oidc else "",
            "oidcProviderUrl": issuer,
        }
    )


def _role(construction: Construction) -> Child:
    prefix = f"{construction.name}-eksRole"
    role = construction.child("aws:iam/role:Role", f"{prefix}-role", {"assumeRolePolicy": _TRUST})
    construction.child(
        "aws:iam/rolePolicyAttachment:RolePolicyAttachment",
        f"{prefix}-4b490823",
        {"role": role.outputs.get("name", UNKNOWN), "policyArn": _CLUSTER_POLICY},
    )
    return role


def _security_group(construction: Construction) -> Child:
    vpc: Properties = _present({"vpcId": construction.inputs.get("vpcId")})
    return construction.child(
        "aws:ec2/securityGroup:SecurityGroup",
        f"{construction.name}-eksClusterSecurityGroup",
        {"revokeRulesOnDelete": True, **vpc},
    )


def _oidc_provider(construction: Construction, issuer: Value) -> Child:
    return construction.child(
        "aws:iam/openIdConnectProvider:OpenIdConnectProvider",
        f"{construction.name}-oidcProvider",
        {"clientIdLists": ["sts.amazonaws.com"], "url": issuer},
    )


def _subnets(inputs: Properties) -> list[Value]:
    found: list[Value] = []
    for name in ("subnetIds", "publicSubnetIds", "privateSubnetIds"):
        given = inputs.get(name)
        if isinstance(given, Sequence) and not isinstance(given, str):
            found.extend(given)
    return found or list(_DEFAULT_SUBNETS)


def _cluster_inputs(
    inputs: Properties, role: Child, group: Child | None, subnets: Sequence[Value]
) -> Properties:
    mode = inputs.get("authenticationMode")
    network: Properties = _present(
        {
            "subnetIds": subnets,
            "securityGroupIds": [group.id] if group else None,
            "endpointPrivateAccess": inputs.get("endpointPrivateAccess"),
            "endpointPublicAccess": inputs.get("endpointPublicAccess"),
            "publicAccessCidrs": inputs.get("publicAccessCidrs"),
        }
    )
    return _present(
        {
            "name": inputs.get("name"),
            "version": inputs.get("version"),
            "roleArn": role.outputs.get("arn", UNKNOWN),
            "vpcConfig": network,
            "accessConfig": {"authenticationMode": mode} if mode is not None else None,
            "deletionProtection": inputs.get("deletionProtection"),
            "enabledClusterLogTypes": inputs.get("enabledClusterLogTypes"),
            "tags": inputs.get("clusterTags", inputs.get("tags")),
        }
    )


def _kubeconfig(cluster: Child) -> Value:
    """Return a kubeconfig that asks the AWS CLI for a token: it holds no credential."""
    outputs = {
        name: cluster.outputs.get(name, UNKNOWN) for name in ("endpoint", "certificateAuthority", "name")
    }
    if has_unknown(outputs):
        return UNKNOWN
    authority = outputs["certificateAuthority"]
    data = authority.get("data") if isinstance(authority, Mapping) else None
    command: Properties = {
        "apiVersion": "client.authentication.k8s.io/v1beta1",
        "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", outputs["name"], "--output", "json"],
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": "kubernetes",
                "cluster": {"server": outputs["endpoint"], "certificate-authority-data": data},
            }
        ],
        "contexts": [{"name": "aws", "context": {"cluster": "kubernetes", "user": "aws"}}],
        "current-context": "aws",
        "users": [{"name": "aws", "user": {"exec": command}}],
    }


def _issuer(cluster: Child) -> Value:
    identities = cluster.outputs.get("identities", UNKNOWN)
    for key in (0, "oidcs", 0, "issuer"):
        if isinstance(identities, Sequence) and not isinstance(identities, str) and isinstance(key, int):
            identities = identities[key]
        elif isinstance(identities, Mapping) and isinstance(key, str):
            identities = identities.get(key, UNKNOWN)
    return identities


def _vpc_output(cluster: Child, name: str) -> Value:
    network = cluster.outputs.get("vpcConfig", UNKNOWN)
    return network.get(name, UNKNOWN) if isinstance(network, Mapping) else UNKNOWN


def _without_scheme(url: Value) -> Value:
    return url.removeprefix("https://") if isinstance(url, str) else url


def _reference(child: Child | None) -> Value:
    return Reference(urn=child.urn, id=child.id) if child else None


def _present(values: Properties) -> dict[str, Value]:
    return {name: value for name, value in values.items() if value is not None}
