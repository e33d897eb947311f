"""The options of `holdfast up CLOUD --spot-gpus ACCELERATOR`; imports no SDK, because every `holdfast up` reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import argparse

#: How many GPUs a stack has at most without `--count`.
MOST_GPUS: Final = 8


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a stack for GPUs on spot."""
    group = parser.add_argument_group("GPUs on spot in your cloud: STACK is aws, azure or gcp")
    group.add_argument("--spot-gpus", metavar="ACCELERATOR", help="write a stack for it, for example `a100`")
    group.add_argument(
        "--count", type=int, metavar="N", help=f"how many GPUs at most; {MOST_GPUS} by default"
    )
    group.add_argument("--region", metavar="REGION", help="the region or location")
    group.add_argument(
        "--allow-cidr", metavar="CIDR", help="the addresses that may reach the API server of the cluster"
    )
    group.add_argument(
        "--zones", metavar="ZONE,…", help="the zones that sell the machines, on Google Cloud only"
    )
    group.add_argument("--project", metavar="PROJECT", help="the project, on Google Cloud only")
    group.add_argument("--yes", action="store_true", help="run `pulumi up` without its question")
    group.add_argument("--rehearse", action="store_true", help="rehearse the stack here, with no account")
