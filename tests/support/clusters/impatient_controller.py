"""Runs the fallback controller with timeouts of seconds instead of minutes; unit tests hold the real values.

`python -m tests.support.clusters.impatient_controller` takes the arguments of `python -m pulumi_holdfast.controller`.
"""

import sys
from collections.abc import Mapping
from datetime import timedelta
from types import ModuleType
from typing import Final

from pulumi_holdfast.controller.__main__ import main
from pulumi_holdfast.controller.state_machine import failover, outages, tier_visit

#: The timeouts that tests wait out, by module and name. Longer than what a busy machine needs for what they wait for.
SHORT: Final[Mapping[ModuleType, Mapping[str, timedelta]]] = {
    failover: {"HEAD_TIMEOUT": timedelta(seconds=25), "MISSING_POOL_GRACE": timedelta(seconds=10)},
    tier_visit: {"MISSING_POOL_GRACE": timedelta(seconds=10), "PODS_CREATED_WITHIN": timedelta(seconds=15)},
    outages: {"UNREACHABLE_AFTER": timedelta(seconds=10)},
}


if __name__ == "__main__":
    for module, timeouts in SHORT.items():
        for name, seconds in timeouts.items():
            setattr(module, name, seconds)
    sys.exit(main())
