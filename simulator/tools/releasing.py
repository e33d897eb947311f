"""A chart as its publisher numbers it.

In AWS's repository Karpenter's chart carries the numbers of an older release; publishing it writes the new ones.
"""

import re
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.tools.versions import Version


def write_release(chart: Path, version: Version) -> None:
    """Write the version into the chart, as publishing it does: the chart's, its operator's, its image's.

    The image's digest is known to its registry alone, and the older image's would belie the tag: it is left empty.
    Raises RehearsalError where the chart does not have one place for each.
    """
    _write(chart / "Chart.yaml", {"version": str(version), "appVersion": str(version)})
    _write(chart / "values.yaml", {"    tag": str(version), "    digest": '""'})


def _write(path: Path, entries: dict[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for key, value in entries.items():
        text, count = re.subn(rf"^{key}: .*$", f"{key}: {value}", text, flags=re.MULTILINE)
        if count != 1:
            raise RehearsalError(
                f"{path} has {count} lines of `{key.strip()}:` where one was expected: upstream has changed its chart; "
                "fix simulator/tools/releasing.py"
            )
    path.write_text(text, encoding="utf-8")
