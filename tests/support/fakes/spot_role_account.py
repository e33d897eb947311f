"""The role of a simulated AWS account for EC2 Spot."""

from pulumi_holdfast.rehearsal.clouds.state import CloudObject, CloudState

ROLE = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
ARN = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
PATH = "/aws-service-role/spot.amazonaws.com/"


def create_spot_role(cloud: CloudState) -> None:
    """Create the role with a description and tags of another user."""
    with cloud.changing() as console:
        console.put(
            CloudObject(
                type=ROLE,
                id=ARN,
                urn="",
                inputs={
                    "awsServiceName": "spot.amazonaws.com",
                    "description": "Made by the platform team",
                    "tags": {"owner": "platform"},
                },
                computed={"arn": ARN, "name": "AWSServiceRoleForEC2Spot", "path": PATH},
            )
        )
