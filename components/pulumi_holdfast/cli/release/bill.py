"""Lists the packages of a hashed lock file as a bill of materials in CycloneDX 1.6.

The same lock file, version and time give the same text.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from pulumi_holdfast.ladder.errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from pulumi_holdfast.ladder.json import Json

_PACKAGE: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)", re.MULTILINE)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_NAME: Final = "holdfast"


@dataclass(frozen=True, kw_only=True)
class LockedPackage:
    """A package of a lock file, with the SHA-256 of each file that it may be installed from."""

    name: str
    version: str
    hashes: tuple[str, ...]


def locked_packages(lock: str) -> Iterator[LockedPackage]:
    """The packages of a lock file. Raises ConfigError for one without a hash."""
    found = list(_PACKAGE.finditer(lock))
    ends = [*(each.start() for each in found[1:]), len(lock)]
    for each, end in zip(found, ends, strict=True):
        hashes = tuple(_HASH.findall(lock, each.end(), end))
        if not hashes:
            raise ConfigError.of(
                field=each[1],
                value=f"version {each[2]} without a hash",
                allowed="packages with the hashes of their files",
                fix="Run `make lock`.",
            )
        yield LockedPackage(name=each[1], version=each[2], hashes=hashes)


def bill_of_materials(version: str, lock: str, time: datetime) -> str:
    """The bill of materials of a version whose packages are those of a lock file, as JSON."""
    parts = [_component(package) for package in locked_packages(lock)]
    root = f"{_NAME}@{version}"
    bill: Json = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        # The number of a bill follows from what it lists: a new one for each build would differ between two builds.
        "serialNumber": uuid.uuid5(uuid.NAMESPACE_URL, f"{root}\n{lock}").urn,
        "version": 1,
        "metadata": {
            "timestamp": time.isoformat(),
            "component": {"type": "application", "bom-ref": root, "name": _NAME, "version": version},
        },
        "components": parts,
        "dependencies": [{"ref": root, "dependsOn": [part["bom-ref"] for part in parts]}],
    }
    text = json.dumps(bill, indent=1)
    wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if wrong is not None:
        raise ValueError(f"the bill of materials is not valid CycloneDX 1.6: {wrong}")
    return text + "\n"


def _component(package: LockedPackage) -> Json:
    purl = f"pkg:pypi/{package.name}@{package.version}"
    return {
        "type": "library",
        "bom-ref": purl,
        "name": package.name,
        "version": package.version,
        "purl": purl,
        "hashes": [{"alg": "SHA-256", "content": content} for content in package.hashes],
    }
