"""`python -m pulumi_holdfast.controller`: runs the controller."""

import asyncio
import os
import sys

from pulumi_holdfast.controller.loop.controller import log_to_stderr, run
from pulumi_holdfast.controller.loop.settings import parse_settings
from pulumi_holdfast.ladder.errors import ConfigError


def main() -> int:
    """Run the controller and return the process's exit code."""
    settings = parse_settings(sys.argv[1:], os.environ)
    log_to_stderr(settings.log_level)
    try:
        asyncio.run(run(settings))
    except ConfigError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except OSError as error:
        sys.stderr.write(
            f"cannot listen on {settings.address}:{settings.port}: {error}. Set another --port.\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
