"""An AWS account as its console shows it: whether it has Spot's role, and what the caller may do."""

from __future__ import annotations

from holdfast.simulator.clouds.aws.iam import ATTACHMENT, READ_ONLY
from holdfast.simulator.clouds.state import CloudObject, CloudState

ROLE = "aws:iam/serviceLinkedRole:ServiceLinkedRole"
ARN = "arn:aws:iam::123456789012:role/aws-service-role/spot.amazonaws.com/AWSServiceRoleForEC2Spot"
PATH = "/aws-service-role/spot.amazonaws.com/"


def somebody_makes_the_role(cloud: CloudState) -> None:
    """Put the role into the account, with a description and tags of somebody else's."""
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


def let_the_caller_only_read(cloud: CloudState) -> None:
    """Take every right to change anything in IAM from the caller."""
    with cloud.changing() as console:
        inputs = {"user": "rehearsal", "policyArn": READ_ONLY}
        console.put(CloudObject(type=ATTACHMENT, id="rehearsal", urn="", inputs=inputs))
