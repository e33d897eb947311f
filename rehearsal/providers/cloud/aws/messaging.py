"""Queues and the events they are sent: what AWS adds and refuses."""

from collections.abc import Mapping

from rehearsal.providers.cloud.aws.names import ACCOUNT, place
from rehearsal.providers.cloud.catalogue import Making, Rules


def _queue_url(making: Making) -> str:
    return f"https://sqs.{place(making)}.amazonaws.com/{ACCOUNT}/{making.name}"


RESOURCES: Mapping[str, Rules] = {
    "aws:sqs/queue:Queue": Rules(longest_name=80, identify=_queue_url, computed={"url": _queue_url}),
}
