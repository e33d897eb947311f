"""Judges the repository's stacks of AWS by whole applies of the real Terraform provider, against moto and an echo of EKS."""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.judges.applies import Applied, Applier
from tests.soak.judges.aws_servers import ECHOED, PYTHON, Judged, account
from tests.soak.judges.combinations import Combination
from tests.soak.judges.plans import Document
from tests.support.builders.aws_stacks import PLATFORMS, SUBNETS, VPC

#: What an apply shows of moto, of the echo and of botocore's models: how it looks, and why.
FAULTS: Final[Mapping[str, str]] = {
    r"a second plan changes aws_launch_template tag_specifications": "moto: returns the tags of a launch template as one of its specifications",
    r"a second plan changes aws_s3_bucket tags": "moto: has no tags of buckets for S3 Control",
    r"a second plan changes aws_s3_bucket_server_side_encryption_configuration": "moto: drops the blocked types of encryption",
    r"PullThroughCacheRule": "moto: has no pull-through caches",
    r"creating EC2 Placement Group": "moto: has no placement groups",
    r"s3control ListTagsForResource.ResourceArn": "botocore: its pattern allows no ARN of a bucket in general",
}  # fmt: skip
#: moto answers what it lacks as a failure of the server, which the provider would repeat for minutes.
_SETTINGS: Final = {"s3_use_path_style": True, "skip_requesting_account_id": False, "max_retries": 2}
#: The network that a stack can bring: it is there before.
_BESIDE: Final[Mapping[str, Mapping[str, Document]]] = {
    "aws_vpc": {"brought": {"cidr_block": "10.0.0.0/16"}},
    "aws_subnet": {
        f"brought{number}": {
            "vpc_id": "${aws_vpc.brought.id}",
            "cidr_block": f"10.0.{number}.0/24",
            "availability_zone": f"us-west-2{'ab'[number]}",
        }
        for number in range(len(SUBNETS))
    },
}
_KNOWN: Final[Mapping[str, str]] = {
    VPC: "${aws_vpc.brought.id}",
    **{name: f"${{aws_subnet.brought{number}.id}}" for number, name in enumerate(SUBNETS)},
}
NOT_APPLIED: Final = "the real provider of AWS applies nothing: moto is not installed; run `make judges`"


@dataclass(frozen=True, kw_only=True)
class ApplyVerdict:
    """A summary, with the faults of others, and what is wrong with the stacks."""

    summary: Sequence[str]
    wrong: Sequence[str]


def is_installed() -> bool:
    """Whether this machine has moto and `terraform`."""
    return PYTHON.is_file() and shutil.which("terraform") is not None


def judge_applies(combinations: Iterable[Combination], binary: Path) -> ApplyVerdict:
    """Create each of the repository's stacks in an empty account, and judge each request."""
    summary: list[str] = []
    wrong: list[str] = []
    for each in combinations:
        if each.name not in PLATFORMS:
            continue
        with (
            tempfile.TemporaryDirectory(prefix="holdfast-applies-") as name,
            account(Path(name)) as (url, judged),
        ):
            applier = Applier(
                "aws",
                binary,
                Path(name),
                settings=_SETTINGS,
                # S3 Control puts the account before the host's name, which only a proxy resolves.
                environment={"AWS_ENDPOINT_URL": url, "HTTP_PROXY": url},
                beside=_BESIDE,
                known=_KNOWN,
            )
            applied = applier.apply(each.known)
        lines, ours = report(each.name, len(each.known), applied, judged)
        summary += lines
        wrong += ours
    return ApplyVerdict(summary=summary, wrong=wrong)


def report(name: str, count: int, applied: Applied, judged: Judged) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines about a stack, and what no fault of others explains."""
    faults: Counter[str] = Counter()
    ours: list[str] = []
    for line in _odd(applied, judged):
        fault = next((reason for pattern, reason in FAULTS.items() if re.search(pattern, line)), None)
        if fault is None:
            ours.append(f"{name}, applied: {line}")
        else:
            faults[fault] += 1
    total, echoed = judged.requests.total(), judged.requests[ECHOED]
    answered = f"{total - echoed} answered by moto and {echoed} by the echo of EKS"
    judged_as = f"{total} requests of {len(judged.operations)} operations judged, {answered}"
    lines = [f"  hashicorp/aws creates {applied.created} of {count} resources of {name}: {judged_as}"]
    lines += [f"    {number} × {fault}" for fault, number in sorted(faults.items())]
    return lines, ours


def _odd(applied: Applied, judged: Judged) -> Iterator[str]:
    """Yield what was refused, what a second plan changes, and what the models say against requests."""
    yield from (f"{name}: {message}" for name, message in applied.refused.items())
    for name, fields in applied.changed.items():
        yield from (f"{name}: a second plan changes {field}" for field in fields)
    yield from judged.wrong
