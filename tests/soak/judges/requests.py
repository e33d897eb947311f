"""Which request of an API creates each resource of AWS and Google Cloud, and where the provider's fields are in it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

#: A field that the provider keeps for itself, or sends in a form that the API's model does not describe.
PROVIDER_ONLY: Final = ""


@dataclass(frozen=True, kw_only=True)
class Request:
    """The shapes that have the fields of a type, and the fields with other names there, by their ends.

    `service` is botocore's name, or the discovery document. A field is the first that fits: `nodeConfig.taints.effect`,
    then `taints.effect`, then `effect`. Its place is a dotted path in a shape.
    """

    token: str
    service: str
    shapes: Sequence[str]
    names: Mapping[str, str] = field(default_factory=dict[str, str])

    def where(self, path: str) -> str | None:
        """Return the place of a field of the provider, None where it has the same name in the API."""
        steps = path.split(".")
        ends = (".".join(steps[at:]) for at in range(len(steps)))
        return next((self.names[end] for end in ends if end in self.names), None)


def _aws(token: str, service: str, *shapes: str, **names: str) -> Request:
    return Request(
        token=f"aws:{token}", service=service, shapes=shapes, names={"tags": PROVIDER_ONLY, **names}
    )


_RULE: Final = {
    "cidrIpv4": "IpPermissions.IpRanges.CidrIp",
    "description": "IpPermissions.IpRanges.Description",
    "fromPort": "IpPermissions.FromPort",
    "ipProtocol": "IpPermissions.IpProtocol",
    "referencedSecurityGroupId": "IpPermissions.UserIdGroupPairs.GroupId",
    "securityGroupId": "GroupId",
    "toPort": "IpPermissions.ToPort",
}
#: Ids of other resources, which have patterns here: the ids of the tests have none.
_MADE_UP: Final = dict.fromkeys(
    ("fileSystemId", "securityGroupIds", "securityGroups", "subnetId", "subnetIds"), PROVIDER_ONLY
)
_AWS: Final = (
    _aws("amp/scraper:Scraper", "amp", "CreateScraper", amp="ampConfiguration", eks="eksConfiguration", scrapeConfiguration=PROVIDER_ONLY),
    _aws("amp/workspace:Workspace", "amp", "CreateWorkspace"),
    _aws("cloudwatch/eventRule:EventRule", "events", "PutRule"),
    _aws("cloudwatch/eventTarget:EventTarget", "events", "PutTargets", arn="Targets.Arn", targetId="Targets.Id"),
    _aws("cloudwatch/logGroup:LogGroup", "logs", "CreateLogGroup", "PutRetentionPolicy", name="logGroupName"),
    _aws("ec2/defaultSecurityGroup:DefaultSecurityGroup", "ec2", "CreateSecurityGroup"),
    _aws("ec2/eip:Eip", "ec2", "AllocateAddress"),
    _aws("ec2/internetGateway:InternetGateway", "ec2", "AttachInternetGateway"),
    _aws("ec2/launchTemplate:LaunchTemplate", "ec2", "CreateLaunchTemplate", name="LaunchTemplateName", blockDeviceMappings="LaunchTemplateData.BlockDeviceMappings", metadataOptions="LaunchTemplateData.MetadataOptions", tagSpecifications="LaunchTemplateData.TagSpecifications", deleteOnTermination=PROVIDER_ONLY, encrypted=PROVIDER_ONLY),
    _aws("ec2/natGateway:NatGateway", "ec2", "CreateNatGateway"),
    _aws("ec2/placementGroup:PlacementGroup", "ec2", "CreatePlacementGroup", name="GroupName"),
    _aws("ec2/route:Route", "ec2", "CreateRoute"),
    _aws("ec2/routeTable:RouteTable", "ec2", "CreateRouteTable"),
    _aws("ec2/routeTableAssociation:RouteTableAssociation", "ec2", "AssociateRouteTable"),
    _aws("ec2/securityGroup:SecurityGroup", "ec2", "CreateSecurityGroup", name="GroupName"),
    _aws("ec2/subnet:Subnet", "ec2", "CreateSubnet", "ModifySubnetAttribute", mapPublicIpOnLaunch="MapPublicIpOnLaunch.Value"),
    _aws("ec2/vpc:Vpc", "ec2", "CreateVpc", "ModifyVpcAttribute", enableDnsHostnames="EnableDnsHostnames.Value", enableDnsSupport="EnableDnsSupport.Value"),
    _aws("ec2/vpcEndpoint:VpcEndpoint", "ec2", "CreateVpcEndpoint"),
    _aws("ecr/pullThroughCacheRule:PullThroughCacheRule", "ecr", "CreatePullThroughCacheRule"),
    _aws("efs/accessPoint:AccessPoint", "efs", "CreateAccessPoint", **_MADE_UP),
    _aws("efs/fileSystem:FileSystem", "efs", "CreateFileSystem", creationToken=PROVIDER_ONLY),
    _aws("efs/fileSystemPolicy:FileSystemPolicy", "efs", "PutFileSystemPolicy", **_MADE_UP),
    _aws("efs/mountTarget:MountTarget", "efs", "CreateMountTarget", **_MADE_UP),
    _aws("eks/accessEntry:AccessEntry", "eks", "CreateAccessEntry"),
    _aws("eks/accessPolicyAssociation:AccessPolicyAssociation", "eks", "AssociateAccessPolicy"),
    _aws("eks/addon:Addon", "eks", "CreateAddon", resolveConflictsOnCreate="resolveConflicts", resolveConflictsOnUpdate="resolveConflicts"),
    _aws("eks/cluster:Cluster", "eks", "CreateCluster", vpcConfig="resourcesVpcConfig", enabledClusterLogTypes="logging.clusterLogging.types"),
    _aws("eks/identityProviderConfig:IdentityProviderConfig", "eks", "AssociateIdentityProviderConfig"),
    _aws("eks/nodeGroup:NodeGroup", "eks", "CreateNodegroup", nodeRoleArn="nodeRole", subnetIds="subnets"),
    _aws("eks/podIdentityAssociation:PodIdentityAssociation", "eks", "CreatePodIdentityAssociation"),
    _aws("fsx/dataRepositoryAssociation:DataRepositoryAssociation", "fsx", "CreateDataRepositoryAssociation", **_MADE_UP),
    _aws("fsx/lustreFileSystem:LustreFileSystem", "fsx", "CreateFileSystem", **_MADE_UP, **{
        name: f"LustreConfiguration.{name[0].upper()}{name[1:]}" for name in ("dataCompressionType", "deploymentType", "perUnitStorageThroughput")
    }),
    _aws("iam/instanceProfile:InstanceProfile", "iam", "CreateInstanceProfile", "AddRoleToInstanceProfile", name="InstanceProfileName", role="RoleName"),
    _aws("iam/role:Role", "iam", "CreateRole", assumeRolePolicy="AssumeRolePolicyDocument", name="RoleName", namePrefix="RoleName"),
    _aws("iam/rolePolicy:RolePolicy", "iam", "PutRolePolicy", name="PolicyName", policy="PolicyDocument", role="RoleName"),
    _aws("iam/rolePolicyAttachment:RolePolicyAttachment", "iam", "AttachRolePolicy", role="RoleName"),
    _aws("iam/serviceLinkedRole:ServiceLinkedRole", "iam", "CreateServiceLinkedRole"),
    _aws("kms/key:Key", "kms", "CreateKey", "ScheduleKeyDeletion", deletionWindowInDays="PendingWindowInDays", enableKeyRotation=PROVIDER_ONLY),
    _aws("s3/bucket:Bucket", "s3", "CreateBucket", forceDestroy=PROVIDER_ONLY),
    _aws("s3/bucketLifecycleConfiguration:BucketLifecycleConfiguration", "s3", "PutBucketLifecycleConfiguration", rules="LifecycleConfiguration.Rules"),
    _aws("s3/bucketPolicy:BucketPolicy", "s3", "PutBucketPolicy"),
    _aws("s3/bucketPublicAccessBlock:BucketPublicAccessBlock", "s3", "PutPublicAccessBlock", **{
        name: f"PublicAccessBlockConfiguration.{name}" for name in ("blockPublicAcls", "blockPublicPolicy", "ignorePublicAcls", "restrictPublicBuckets")
    }),
    _aws("s3/bucketServerSideEncryptionConfiguration:BucketServerSideEncryptionConfiguration", "s3", "PutBucketEncryption",
        rules="ServerSideEncryptionConfiguration.Rules", blockedEncryptionTypes="BlockedEncryptionTypes.EncryptionType"),
    _aws("s3/bucketVersioning:BucketVersioning", "s3", "PutBucketVersioning"),
    _aws("sqs/queue:Queue", "sqs", "CreateQueue", name="QueueName", messageRetentionSeconds=PROVIDER_ONLY, sqsManagedSseEnabled=PROVIDER_ONLY),
    _aws("sqs/queuePolicy:QueuePolicy", "sqs", "SetQueueAttributes", policy=PROVIDER_ONLY),
    _aws("vpc/securityGroupEgressRule:SecurityGroupEgressRule", "ec2", "AuthorizeSecurityGroupEgress", **_RULE),
    _aws("vpc/securityGroupIngressRule:SecurityGroupIngressRule", "ec2", "AuthorizeSecurityGroupIngress", **_RULE),
)  # fmt: skip


def _gcp(token: str, service: str, /, *shapes: str, **names: str) -> Request:
    return Request(
        token=f"gcp:{token}", service=service, shapes=shapes, names={"project": PROVIDER_ONLY, **names}
    )


_NODES: Final = {
    "guestAccelerators": "accelerators",
    "guestAccelerators.count": "acceleratorCount",
    "guestAccelerators.type": "acceleratorType",
}
_GCP: Final = (
    _gcp("compute/firewall:Firewall", "compute.v1", "Firewall", **{"allows": "allowed", "allows.protocol": "IPProtocol"}),
    _gcp("compute/globalAddress:GlobalAddress", "compute.v1", "Address"),
    _gcp("compute/network:Network", "compute.v1", "Network", routingMode="routingConfig.routingMode"),
    _gcp("compute/router:Router", "compute.v1", "Router", region=PROVIDER_ONLY),
    _gcp("compute/routerNat:RouterNat", "compute.v1", "RouterNat", region=PROVIDER_ONLY, router=PROVIDER_ONLY, **{"subnetworks.sourceIpRangesToNats": "sourceIpRangesToNat"}),
    _gcp("compute/subnetwork:Subnetwork", "compute.v1", "Subnetwork"),
    _gcp("container/cluster:Cluster", "container.v1beta1", "Cluster", **_NODES, **{
        "clusterAutoscaling": "autoscaling",
        "clusterAutoscaling.enabled": "enableNodeAutoprovisioning",
        "datapathProvider": "networkConfig.datapathProvider",
        "deletionProtection": PROVIDER_ONLY,
        "enableShieldedNodes": "shieldedNodes.enabled",
        "location": PROVIDER_ONLY,
        "managedPrometheus": "managedPrometheusConfig",
        "maintenanceExclusions": "window.maintenanceExclusions",
        "maintenanceExclusions.exclusionName": PROVIDER_ONLY,
        "exclusionOptions": "maintenanceExclusionOptions",
        "minMasterVersion": "initialClusterVersion",
        "networkingMode": PROVIDER_ONLY,
        "nodePools": PROVIDER_ONLY,
        "nodeLocations": "locations",
        "recurringWindow": "window.recurringWindow",
        "recurringWindow.endTime": "window.endTime",
        "recurringWindow.startTime": "window.startTime",
        "removeDefaultNodePool": PROVIDER_ONLY,
        "skipNodePoolRefresh": PROVIDER_ONLY,
    }),
    _gcp("container/nodePool:NodePool", "container.v1beta1", "NodePool", **_NODES, cluster=PROVIDER_ONLY, ignoreNodeCountChanges=PROVIDER_ONLY, location=PROVIDER_ONLY, nodeConfig="config", nodeLocations="locations"),
    _gcp("filestore/instance:Instance", "file.v1", "Instance", location=PROVIDER_ONLY, name=PROVIDER_ONLY, fileShares="fileShares"),
    _gcp("iam/workloadIdentityPool:WorkloadIdentityPool", "iam.v1", "WorkloadIdentityPool", workloadIdentityPoolId=PROVIDER_ONLY),
    _gcp("iam/workloadIdentityPoolProvider:WorkloadIdentityPoolProvider", "iam.v1", "WorkloadIdentityPoolProvider", workloadIdentityPoolId=PROVIDER_ONLY, workloadIdentityPoolProviderId=PROVIDER_ONLY),
    _gcp("kms/cryptoKeyIAMMember:CryptoKeyIAMMember", "cloudkms.v1", "Binding", cryptoKeyId=PROVIDER_ONLY),
    # No discovery document has it: the names and kinds of its fields are those of the SDK.
    _gcp("lustre/instance:Instance", "file.v1", "Instance", **dict.fromkeys(
        ("capacityGib", "description", "filesystem", "instanceId", "kmsKey", "labels", "location", "network", "perUnitStorageThroughput"), PROVIDER_ONLY
    )),
    _gcp("projects/iAMCustomRole:IAMCustomRole", "iam.v1", "CreateRoleRequest", "Role", permissions="includedPermissions"),
    _gcp("projects/iAMMember:IAMMember", "cloudresourcemanager.v1", "Binding"),
    _gcp("serviceaccount/account:Account", "iam.v1", "CreateServiceAccountRequest", "ServiceAccount"),
    _gcp("serviceaccount/iAMMember:IAMMember", "iam.v1", "Binding", serviceAccountId=PROVIDER_ONLY),
    _gcp("servicenetworking/connection:Connection", "servicenetworking.v1", "Connection", service=PROVIDER_ONLY),
    _gcp("storage/bucket:Bucket", "storage.v1", "Bucket", **{
        "encryption.customerSuppliedEncryptionEnforcementConfig.restrictionMode": "restrictionMode",
        "forceDestroy": PROVIDER_ONLY,
        "lifecycleRules": "lifecycle.rule",
        "publicAccessPrevention": "iamConfiguration.publicAccessPrevention",
        "uniformBucketLevelAccess": "iamConfiguration.uniformBucketLevelAccess.enabled",
        "withState": PROVIDER_ONLY,
    }),
    _gcp("storage/bucketIAMMember:BucketIAMMember", "iam.v1", "Binding", bucket=PROVIDER_ONLY),
    _gcp("storage/managedFolder:ManagedFolder", "storage.v1", "ManagedFolder", forceDestroy=PROVIDER_ONLY),
    _gcp("storage/bucketIAMMember:BucketIAMMember", "iam.v1", "Binding", bucket=PROVIDER_ONLY),
    _gcp("storage/managedFolderIamMember:ManagedFolderIamMember", "iam.v1", "Binding", bucket=PROVIDER_ONLY, managedFolder=PROVIDER_ONLY),
)  # fmt: skip


def _azure(token: str, service: str, kind: str, body: str, **names: str) -> Request:
    return Request(token=f"azure-native:{token}", service=service, shapes=(body, kind), names=names)


_AZURE: Final = (
    _azure("authorization:RoleAssignment", "authorization", "Microsoft.Authorization/roleAssignments", "RoleAssignmentCreateParameters"),
    _azure("compute:CapacityReservation", "compute", "Microsoft.Compute/capacityReservationGroups/capacityReservations", "CapacityReservation"),
    _azure("compute:CapacityReservationGroup", "compute", "Microsoft.Compute/capacityReservationGroups", "CapacityReservationGroup"),
    _azure("containerservice:AgentPool", "containerservice", "Microsoft.ContainerService/managedClusters/agentPools", "AgentPool"),
    _azure("containerservice:MaintenanceConfiguration", "containerservice", "Microsoft.ContainerService/managedClusters/maintenanceConfigurations", "MaintenanceConfiguration"),
    _azure("containerservice:ManagedCluster", "containerservice", "Microsoft.ContainerService/managedClusters", "ManagedCluster"),
    _azure("kubernetesconfiguration:Extension", "kubernetesconfiguration", "Microsoft.KubernetesConfiguration/extensions", "Extension"),
    _azure("managedidentity:FederatedIdentityCredential", "msi", "Microsoft.ManagedIdentity/userAssignedIdentities/federatedIdentityCredentials", "FederatedIdentityCredential"),
    _azure("managedidentity:UserAssignedIdentity", "msi", "Microsoft.ManagedIdentity/userAssignedIdentities", "Identity"),
    _azure("monitor:DiagnosticSetting", "monitor", "Microsoft.Insights/diagnosticSettings", "DiagnosticSettingsResource"),
    _azure("network:NatGateway", "network", "Microsoft.Network/natGateways", "NatGateway"),
    _azure("network:PrivateDnsZoneGroup", "network", "Microsoft.Network/privateEndpoints/privateDnsZoneGroups", "PrivateDnsZoneGroup"),
    _azure("network:PrivateEndpoint", "network", "Microsoft.Network/privateEndpoints", "PrivateEndpoint"),
    _azure("network:PublicIPAddress", "network", "Microsoft.Network/publicIPAddresses", "PublicIPAddress"),
    _azure("network:Subnet", "network", "Microsoft.Network/virtualNetworks/subnets", "Subnet"),
    _azure("network:VirtualNetwork", "network", "Microsoft.Network/virtualNetworks", "VirtualNetwork"),
    _azure("privatedns:PrivateZone", "privatedns", "Microsoft.Network/privateDnsZones", "PrivateZone"),
    _azure("privatedns:VirtualNetworkLink", "privatedns", "Microsoft.Network/privateDnsZones/virtualNetworkLinks", "VirtualNetworkLink"),
    _azure("resources:ResourceGroup", "resource/resources", "resourceGroups", "ResourceGroup"),
    _azure("storage:BlobContainer", "storage", "Microsoft.Storage/storageAccounts/blobServices/containers", "BlobContainer"),
    _azure("storage:BlobServiceProperties", "storage", "Microsoft.Storage/storageAccounts/blobServices", "BlobServiceProperties"),
    _azure("storage:FileServiceProperties", "storage", "Microsoft.Storage/storageAccounts/fileServices", "FileServiceProperties"),
    _azure("storage:FileShare", "storage", "Microsoft.Storage/storageAccounts/fileServices/shares", "FileShare"),
    _azure("storage:ManagementPolicy", "storage", "Microsoft.Storage/storageAccounts/managementPolicies", "ManagementPolicy"),
    _azure("storage:StorageAccount", "storage", "Microsoft.Storage/storageAccounts", "StorageAccountCreateParameters"),
    _azure("storagecache:AmlFilesystem", "storagecache", "Microsoft.StorageCache/amlFilesystems", "AmlFilesystem"),
)  # fmt: skip

REQUESTS: Final[Mapping[str, Sequence[Request]]] = {"aws": _AWS, "gcp": _GCP, "azure-native": _AZURE}
