"""What exists in a stand-in cloud: a JSON file that outlives the engine, as a cloud does.

An object the engine died over before it could record it is still here, an orphan anyone can see. Editing the
file is the rehearsal's cloud console.
"""

import fcntl
import json
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from holdfast.scheduling.json import Json, JsonValue
from holdfast.simulator.errors import RehearsalError


@dataclass(frozen=True, kw_only=True)
class CloudObject:
    """One object of the cloud: `inputs` as it was asked for, `computed` what the cloud added.

    `digest` is its own hexadecimal, from which computed values are made; "" for an object put in by hand.
    """

    type: str
    id: str
    urn: str
    inputs: Json
    computed: Json = field(default_factory=dict[str, JsonValue])
    digest: str = ""

    @property
    def outputs(self) -> Json:
        """Everything a read of the object shows."""
        return {**self.inputs, **self.computed}


class Inventory:
    """The objects of a cloud, read or changed inside one transaction."""

    def __init__(self, objects: list[CloudObject], generations: dict[str, int]) -> None:
        self._objects = {(one.type, one.id): one for one in objects}
        self.generations = generations

    def find(self, type_token: str, object_id: str) -> CloudObject | None:
        """Return an object, None where there is none."""
        return self._objects.get((type_token, object_id))

    def of_type(self, type_token: str) -> list[CloudObject]:
        """Return all objects of a type."""
        return [one for one in self._objects.values() if one.type == type_token]

    def all(self) -> list[CloudObject]:
        """Return every object, oldest first."""
        return list(self._objects.values())

    def put(self, one: CloudObject) -> None:
        """Add an object, or change the one of its type and id."""
        self._objects[one.type, one.id] = one

    def remove(self, type_token: str, object_id: str) -> bool:
        """Remove an object; False where it was not there."""
        return self._objects.pop((type_token, object_id), None) is not None

    def next_generation(self, urn: str) -> int:
        """Count the objects made for a URN: a replacement never gets an id again that an old one had."""
        self.generations[urn] = self.generations.get(urn, 0) + 1
        return self.generations[urn]


class CloudState:
    """A cloud's objects in one file, shared by every provider instance and run that names it."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self._mutex = threading.Lock()

    def read(self) -> Inventory:
        """Return the objects as they are now; changes to it are lost."""
        with self._locked():
            return self._load()

    @contextmanager
    def changing(self) -> Generator[Inventory]:
        """Hold the cloud to oneself; what was changed is written at the end, nothing if it raised."""
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
                f"{self.file} does not hold a stand-in cloud's objects: {error}; "
                "fix it, or remove it to begin with an empty cloud"
            ) from error

    def _save(self, inventory: Inventory) -> None:
        """Write beside and rename: a run killed in between leaves the old file whole."""
        document: Mapping[str, object] = {
            "objects": [asdict(one) for one in inventory.all()],
            "generations": inventory.generations,
        }
        beside = self.file.with_suffix(".new")
        beside.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        beside.replace(self.file)
