"""What a run of the engine came to."""

from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.scheduling.json import Json

# The engine's names of operations that leave a resource as it was.
UNCHANGING = frozenset({"same", "read", "refresh"})


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A violation which a policy found.

    `level` is `mandatory` (it stops the run) or `advisory`; `urn` names the resource, and is empty where
    the policy judges the stack as a whole.
    """

    policy: str
    level: str
    urn: str
    message: str

    @property
    def stops(self) -> bool:
        """Whether the run may not go on."""
        return self.level == "mandatory"


@dataclass(frozen=True, kw_only=True)
class Step:
    """What the engine did, or in a preview would do, to one resource: its own operation name (`update`, ...)."""

    operation: str
    urn: str

    @property
    def told(self) -> str:
        """The step in words: `update karpenter (kubernetes:helm.sh/v3:Release)`."""
        token = self.urn.split("::")[2].rsplit("$", 1)[-1]
        return f"{self.operation} {self.urn.rsplit('::', 1)[-1]} ({token})"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What one command did.

    `changes` counts resources by the engine's own operation names (`create`, `same`, ...); `packs` names the
    policy packs that judged the run, with their versions; `outputs` are the stack's, secrets and values still
    unknown replaced by words; `problems` are the engine's error messages, one for each cause.
    """

    command: str
    stack: str
    changes: Mapping[str, int]
    packs: Mapping[str, str]
    verdicts: tuple[Verdict, ...]
    outputs: Json
    problems: tuple[str, ...]
    seconds: float
    stdout: str
    steps: tuple[Step, ...] = ()

    @property
    def changed(self) -> int:
        """How many resources were, or in a preview would be, changed."""
        return sum(count for operation, count in self.changes.items() if operation not in UNCHANGING)

    @property
    def stopped_by_policy(self) -> bool:
        """Whether a mandatory policy stopped the run."""
        return any(verdict.stops for verdict in self.verdicts)
