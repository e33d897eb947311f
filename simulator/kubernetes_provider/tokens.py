"""Type tokens of the kubernetes package, and the Kubernetes kinds they stand for."""

from dataclasses import dataclass

from holdfast.simulator.errors import RehearsalError

RELEASE = "kubernetes:helm.sh/v3:Release"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of object, such as apps/v1 Deployment; the core group's apiVersion is `v1`."""

    api_version: str
    kind: str

    @property
    def group(self) -> str:
        """The API group, empty for the core group."""
        return self.api_version.rpartition("/")[0]


def kind_of(token: str) -> Kind:
    """Return the kind a token such as `kubernetes:apps/v1:Deployment` stands for.

    Custom resources have tokens of the same form: `kubernetes:karpenter.sh/v1:NodePool`. Raises RehearsalError
    for a token of another form.
    """
    package, _, rest = token.partition(":")
    api_version, _, kind = rest.rpartition(":")
    group, _, version = api_version.partition("/")
    if package != "kubernetes" or not (group and version and kind):
        raise RehearsalError(
            f"type {token!r} is not rehearsed; kubernetes:<group>/<version>:<Kind> and {RELEASE} are"
        )
    return Kind(api_version=version if group == "core" else api_version, kind=kind)


def is_patch(token: str, kind: str) -> bool:
    """Whether a token asks for a patch of an object that others made, as `ConfigMapPatch` does.

    A kind may have a name of its own that ends in Patch: only the object tells them apart.
    """
    return kind_of(token).kind == f"{kind}Patch"
