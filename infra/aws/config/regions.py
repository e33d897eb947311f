"""AWS regions: which there are, the partition each is in, the names its zones can have. Pure."""

import re
from difflib import get_close_matches
from typing import Final

from holdfast.infra.config.problems import shown
from holdfast.scheduling.errors import Problem
from holdfast.scheduling.machines import regions, zones_of

#: The key under which a stack names its region: the AWS provider's own, so that no second one can differ from it.
REGION: Final = "aws:region"

_EXAMPLE: Final = f"Write, for example, `{REGION}: us-east-1` beside holdfast:platform."


def region_problem(region: str | None) -> Problem | None:
    """What is wrong with a stack's region; None for one in which machines are sold."""
    if region is None:
        return Problem(
            field=REGION, value="nothing", allowed="the region of the stack", fix=f"Add it. {_EXAMPLE}"
        )
    if region in regions("aws"):
        return None
    close = get_close_matches(region, regions("aws"), n=1)
    return Problem(
        field=REGION,
        value=shown(region),
        allowed=", ".join(sorted(regions("aws"))),
        fix=f'Write "{close[0]}".' if close else _EXAMPLE,
    )


def partition_of(region: str) -> str:
    """The partition that a region's ARNs start with."""
    if region.startswith("cn-"):
        return "aws-cn"
    return "aws-us-gov" if region.startswith("us-gov-") else "aws"


def is_zone_of(zone: str, region: str) -> bool:
    """Whether a zone can be one of a region's own; a Local Zone or a Wavelength Zone is none.

    Accounts see different zones of a region: all letters up to the last that is known can be one.
    """
    letter = zone.removeprefix(region)
    last = max((known[-1] for known in zones_of(region)), default="z")
    return re.fullmatch(rf"{re.escape(region)}[a-z]", zone, re.ASCII) is not None and letter <= last
