"""Changes a simulated AWS account: its role for EC2 Spot, and the caller's permissions."""

from pulumi_holdfast.rehearsal.clouds.aws.iam import ATTACHMENT, READ_ONLY
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


def deny_iam_writes(cloud: CloudState) -> None:
    """Remove all of the caller's write permissions in IAM."""
    with cloud.changing() as console:
        inputs = {"user": "rehearsal", "policyArn": READ_ONLY}
        console.put(CloudObject(type=ATTACHMENT, id="rehearsal", urn="", inputs=inputs))
