"""KMS: what AWS adds."""

import uuid
from collections.abc import Mapping

from holdfast.simulator.clouds.aws.names import ACCOUNT, PARTITION, place
from holdfast.simulator.clouds.catalogue import Making, Rules


def _identify(making: Making) -> str:
    return str(uuid.UUID(making.digest[:32]))


def _arn(making: Making) -> str:
    return f"arn:{PARTITION}:kms:{place(making)}:{ACCOUNT}:key/{_identify(making)}"


RESOURCES: Mapping[str, Rules] = {
    "aws:kms/key:Key": Rules(identify=_identify, computed={"arn": _arn, "keyId": _identify}),
}
