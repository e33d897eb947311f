"""The state of a simulated cloud: a JSON file with its objects, which persists between runs.

It contains orphans of a killed engine, too. Tests edit the state as a user edits resources in a cloud console.
"""

import fcntl
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.errors import RehearsalError


@dataclass(frozen=True, kw_only=True)
class CloudObject:
    """An object of the cloud, with its inputs and the values that the cloud computed.

    `digest` is a unique hexadecimal, the source of computed ids; "" for an object that a test added.
    """

    type: str
    id: str
    urn: str
    inputs: Json
    computed: Json = field(default_factory=dict[str, JsonValue])
    digest: str = ""

    @property
    def outputs(self) -> Json:
        """The inputs and the computed values."""
        return {**self.inputs, **self.computed}


class Inventory:
    """The objects of a cloud in one transaction."""

    def __init__(self, objects: list[CloudObject], generations: dict[str, int]) -> None:
        self._objects = {(one.type, one.id): one for one in objects}
        self.generations = generations

    def find(self, type_token: str, object_id: str) -> CloudObject | None:
        """Return an object, None where it does not exist."""
        return self._objects.get((type_token, object_id))

    def of_type(self, type_token: str) -> list[CloudObject]:
        """Return all objects of a type."""
        return [one for one in self._objects.values() if one.type == type_token]

    def all(self) -> list[CloudObject]:
        """Return all objects, oldest first."""
        return list(self._objects.values())

    def put(self, one: CloudObject) -> None:
        """Add an object, or replace the one with its type and id."""
        self._objects[one.type, one.id] = one

    def remove(self, type_token: str, object_id: str) -> bool:
        """Remove an object; False where it does not exist."""
        return self._objects.pop((type_token, object_id), None) is not None

    def next_generation(self, urn: str) -> int:
        """Count the objects of a URN, so that a replacement has a new id."""
        self.generations[urn] = self.generations.get(urn, 0) + 1
        return self.generations[urn]


class CloudState:
    """The state file of a cloud; provider instances and processes may share it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mutex = threading.Lock()

    def read(self) -> Inventory:
        """Return the current objects; changes to them are not written."""
        with self._locked():
            return self._load()

    @contextmanager
    def changing(self) -> Generator[Inventory]:
        """Lock the cloud; the changes are written at the end, none after an exception."""
        with self._locked():
            inventory = self._load()
            yield inventory
            self._save(inventory)

    @contextmanager
    def _locked(self) -> Generator[None]:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        with self._mutex, self.file.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _load(self) -> Inventory:
        if not self.file.exists():
            return Inventory([], {})
        try:
            document = json.loads(self.file.read_text(encoding="utf-8"))
            objects = [CloudObject(**entry) for entry in document["objects"]]
            return Inventory(objects, dict(document.get("generations", {})))
        except (ValueError, KeyError, TypeError) as error:
            raise RehearsalError(
                f"{self.file} is not the state of a simulated cloud: {error}; "
                "fix it, or remove it to begin with an empty cloud"
            ) from error

    def _save(self, inventory: Inventory) -> None:
        """Write a new file and rename it, so that a kill leaves the old file intact."""
        document: Mapping[str, object] = {
            "objects": [asdict(one) for one in inventory.all()],
            "generations": inventory.generations,
        }
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.file)
