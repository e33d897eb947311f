"""Judges the repository's stacks of AWS and Google Cloud by whole applies of the real Terraform providers."""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.soak.judges import aws_servers, gcp_servers
from tests.soak.judges.applies import Applied, Applier
from tests.soak.judges.combinations import Combination
from tests.soak.judges.server import CLOUDS, Account, Judged
from tests.support.builders import aws_stacks, gcp_stacks

#: What an apply shows of moto, of the providers and of botocore's models: how it looks, and why.
FAULTS: Final[Mapping[str, str]] = {
    r"a second plan changes aws_launch_template tag_specifications": "moto: returns the tags of a launch template as one of its specifications",
    r"a second plan changes aws_s3_bucket tags": "moto: has no tags of buckets for S3 Control",
    r"a second plan changes aws_s3_bucket_server_side_encryption_configuration": "moto: drops the blocked types of encryption",
    r"PullThroughCacheRule": "moto: has no pull-through caches",
    r"creating EC2 Placement Group": "moto: has no placement groups",
    r"s3control ListTagsForResource.ResourceArn": "botocore: its pattern allows no ARN of a bucket in general",
    r"routingConfig.deleteBgpAlwaysCompareMed: no field": "hashicorp/google-beta: sends a field of its own",
    r"nats.initialNatIps: no field": "hashicorp/google-beta: sends a field of its own",
}  # fmt: skip
#: An empty account of each cloud; the argument is a folder for its files.
_ACCOUNTS: Final[Mapping[str, Callable[[Path], AbstractContextManager[Account]]]] = {
    "aws": aws_servers.account,
    "gcp": gcp_servers.account,
}
_STACKS: Final = {"aws": aws_stacks.PLATFORMS, "gcp": gcp_stacks.PLATFORMS}
NOT_APPLIED: Final = (
    "the real provider applies nothing: moto and the discovery documents are not installed; run `make judges`"
)


@dataclass(frozen=True, kw_only=True)
class ApplyVerdict:
    """A summary, with the faults of others, and what is wrong with the stacks."""

    summary: Sequence[str]
    wrong: Sequence[str]


def is_installed() -> bool:
    """Whether this machine has the accounts and `terraform`."""
    return CLOUDS.is_dir() and shutil.which("terraform") is not None


def judge_applies(cloud: str, combinations: Iterable[Combination], binary: Path) -> ApplyVerdict:
    """Create each of the repository's stacks in an empty account, and judge each request."""
    summary: list[str] = []
    wrong: list[str] = []
    for each in combinations:
        if each.name not in _STACKS[cloud]:
            continue
        with (
            tempfile.TemporaryDirectory(prefix="holdfast-applies-") as name,
            _ACCOUNTS[cloud](Path(name)) as account,
        ):
            applier = Applier(cloud, binary, Path(name), account.target())
            applied = applier.apply(each.known)
        lines, ours = report(each, applied, account.judged)
        summary += lines
        wrong += ours
    return ApplyVerdict(summary=summary, wrong=wrong)


def report(combination: Combination, applied: Applied, judged: Judged) -> tuple[Sequence[str], Sequence[str]]:
    """Return the lines about a stack, and what no fault of others explains."""
    faults: Counter[str] = Counter()
    ours: list[str] = []
    for line in _odd(applied, judged):
        fault = next((reason for pattern, reason in FAULTS.items() if re.search(pattern, line)), None)
        if fault is None:
            ours.append(f"{combination.name}, applied: {line}")
        else:
            faults[fault] += 1
    created = f"the provider creates {applied.created} of {len(combination.known)} resources"
    judged_as = f"{judged.answered.total()} requests of {len(judged.operations)} operations judged"
    answered = " and ".join(f"{number} by {part}" for part, number in sorted(judged.answered.items()))
    lines = [f"  {combination.name}: {created}; {judged_as}, answered {answered}"]
    lines += [f"    {number} × {fault}" for fault, number in sorted(faults.items())]
    return lines, ours


def _odd(applied: Applied, judged: Judged) -> Iterator[str]:
    """Yield what was refused, what a second plan changes, and what the models say against requests."""
    yield from (f"{name}: {message}" for name, message in applied.refused.items())
    for name, fields in applied.changed.items():
        yield from (f"{name}: a second plan changes {field}" for field in fields)
    yield from judged.wrong
