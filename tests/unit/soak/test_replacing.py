"""The fields that replace a resource are read from the sources of the Terraform providers, and the simulator uses them."""

from pathlib import Path

import pytest

from pulumi_holdfast.rehearsal.clouds.catalogue import recorded_replacing
from pulumi_holdfast.rehearsal.engine.diff import ChangeKind, PropertyChange
from pulumi_holdfast.rehearsal.errors import RehearsalError
from tests.soak.judges.field_changes import resource_type
from tests.soak.judges.replacing import SOURCES, replacing

NODE_GROUP = "aws:eks/nodeGroup:NodeGroup"
GO = """package eks

const (
	attrAMIType = "ami_type"
)

func resourceNodeGroup() *schema.Resource {
	return &schema.Resource{
		SchemaFunc: func() map[string]*schema.Schema {
			return map[string]*schema.Schema{
				attrAMIType: {
					Type:     schema.TypeString,
					ForceNew: true, // "capacity_type": {ForceNew: true}
				},
				names.AttrVersion: {
					Type: schema.TypeString,
				},
				"subnet_ids": {
					Elem:     &schema.Schema{Type: schema.TypeString},
					ForceNew: true,
				},
				"launch_template": {
					ForceNew: true,
					Elem: &schema.Resource{
						Schema: map[string]*schema.Schema{
							"id":              {Type: schema.TypeString, ForceNew: true},
							names.AttrVersion: {Type: schema.TypeString},
						},
					},
				},
				"remote_access": remoteAccessSchema(),
				"no_such_input": {ForceNew: true},
			}
		},
	}
}

func remoteAccessSchema() *schema.Schema {
	return &schema.Schema{
		Elem: &schema.Resource{
			Schema: map[string]*schema.Schema{
				"ec2_ssh_key": {ForceNew: true},
			},
		},
	}
}
"""
FRAMEWORK = """package eks

func (r *podIdentityAssociationResource) Schema(ctx context.Context, response *resource.SchemaResponse) {
	response.Schema = schema.Schema{
		Attributes: map[string]schema.Attribute{
			"namespace": schema.StringAttribute{
				PlanModifiers: []planmodifier.String{
					stringplanmodifier.RequiresReplace(),
				},
			},
			"role_arn": schema.StringAttribute{Required: true},
		},
	}
}
"""


@pytest.fixture
def provider(tmp_path: Path) -> Path:
    folder = tmp_path / "internal/service/eks"
    folder.mkdir(parents=True)
    (folder / "node_group.go").write_text(GO, encoding="utf-8")
    (folder / "pod_identity_association.go").write_text(FRAMEWORK, encoding="utf-8")
    names = tmp_path / "names"
    names.mkdir()
    (names / "attr_consts_gen.go").write_text('const (\n\tAttrVersion = "version"\n)\n', encoding="utf-8")
    return tmp_path


def test_marked_fields_are_read_with_the_names_of_the_sdk(provider: Path) -> None:
    assert replacing(NODE_GROUP, provider) == [
        "amiType",
        "launchTemplate.id",
        "remoteAccess.ec2SshKey",
        "subnetIds",
    ]


def test_plan_modifiers_of_the_newer_framework_are_read(provider: Path) -> None:
    token = "aws:eks/podIdentityAssociation:PodIdentityAssociation"
    assert replacing(token, provider) == ["namespace"]


def test_a_source_that_does_not_exist_is_an_error(provider: Path) -> None:
    with pytest.raises(RehearsalError, match=r"cluster\.go does not exist"):
        replacing("aws:eks/cluster:Cluster", provider)


def test_every_type_of_the_sources_of_aws_is_recorded() -> None:
    assert recorded_replacing().keys() == SOURCES.keys()


@pytest.mark.parametrize(
    ("token", "field", "replaces"),
    [
        ("gcp:compute/firewall:Firewall", "direction", True),
        ("gcp:compute/firewall:Firewall", "network", False),
        ("gcp:container/cluster:Cluster", "nodeConfig.shieldedInstanceConfig.enableSecureBoot", True),
        ("gcp:container/cluster:Cluster", "ipAllocationPolicy.stackType", False),
        ("gcp:container/nodePool:NodePool", "nodeConfig.flexStart", True),
        ("gcp:container/nodePool:NodePool", "nodeConfig.machineType", False),
        ("aws:iam/role:Role", "namePrefix", True),
        ("aws:iam/instanceProfile:InstanceProfile", "role", False),
        ("aws:eks/nodeGroup:NodeGroup", "launchTemplate.version", False),
        ("azure-native:network:PrivateEndpoint", "subnet.id", True),
        ("azure-native:network:Subnet", "addressPrefix", False),
    ],
)
def test_the_simulator_replaces_what_the_provider_replaces(token: str, field: str, replaces: bool) -> None:
    change = PropertyChange(path=field, kind=ChangeKind.UPDATE)
    assert change.within(resource_type(token).immutable) is replaces
