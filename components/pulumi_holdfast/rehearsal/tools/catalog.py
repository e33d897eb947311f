"""The catalog of tools: their Go packages, their versions, and the pins in the go.mod files of tools/."""

import re
from dataclasses import dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path, PurePosixPath

from pulumi_holdfast.rehearsal.errors import RehearsalError

_VERSION = re.compile(r"v?(\d+)\.(\d+)\.(\d+)(-[0-9A-Za-z.-]+)?")


@dataclass(frozen=True, kw_only=True, order=True)
class Version:
    """A released version of three numbers; a pre-release is no version."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"


class Accepts(Enum):
    """The versions that can replace the pinned one."""

    EXACT = "exactly {pin}"
    SAME_MAJOR = "{pin} or newer, below {next_major}"
    NEIGHBOR_MINOR = "{pin} or at most one minor version away"

    def good(self, found: Version, pin: Version) -> bool:
        """Whether `found` can replace `pin`."""
        if self is Accepts.EXACT:
            return found == pin
        if self is Accepts.SAME_MAJOR:
            return found.major == pin.major and found >= pin
        return found.major == pin.major and abs(found.minor - pin.minor) <= 1

    def wanted(self, pin: Version) -> str:
        """The accepted versions as text, for example `3.245.0 or newer, below 4`."""
        return self.value.format(pin=pin, next_major=pin.major + 1)


def parse_version(text: str) -> Version | None:
    """Return the first released version in the output of a program, None if there is none."""
    match = _VERSION.search(text)
    if match is None or match[4]:
        return None
    return Version(major=int(match[1]), minor=int(match[2]), patch=int(match[3]))


_REQUIRE = re.compile(r"^(?:require )?\s*(?P<path>[\w.\-/~]+\.[\w.\-/~]+) (?P<version>v\S+)", re.MULTILINE)
_TOOL = re.compile(r"^(?:tool |\t)(?P<path>[\w.\-/~]+)$", re.MULTILINE)
_REPLACE = re.compile(r"^replace \(.*?^\)|^replace [^\n]*$", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class GoModule:
    """The contents of one go.mod: version (`v1.30.1`) by module path, and the built packages."""

    folder: Path
    requires: dict[str, str]
    tools: frozenset[str]

    def providing(self, package: str) -> tuple[str, str]:
        """Return path and version of the required module that contains `package`: the longest matching path.

        Raises RehearsalError if go.mod requires none.
        """
        candidates = [path for path in self.requires if package == path or package.startswith(f"{path}/")]
        if not candidates:
            raise RehearsalError(
                f"{self.folder / 'go.mod'} requires no module for {package}; add it with "
                f"`go get -tool {package}@VERSION` in {self.folder}"
            )
        path = max(candidates, key=len)
        return path, self.requires[path]


def parse_go_mod(folder: Path, text: str) -> GoModule:
    """Parse a go.mod; a replacement is no pin."""
    pinned = _REPLACE.sub("", text)
    return GoModule(
        folder=folder,
        requires={match["path"]: match["version"] for match in _REQUIRE.finditer(pinned)},
        tools=frozenset(match["path"] for match in _TOOL.finditer(pinned)),
    )


def read_go_module(folder: Path) -> GoModule:
    """Read `folder`/go.mod. Raises RehearsalError if the file is missing."""
    try:
        text = (folder / "go.mod").read_text(encoding="utf-8")
    except OSError as error:
        raise RehearsalError(
            f"{folder / 'go.mod'} cannot be read ({error.strerror}); restore the folder"
        ) from error
    return parse_go_mod(folder, text)


def pinned_text(project_root: Path, module: str, package: str) -> str:
    """Return the version text of the module that contains `package` in tools/`module`/go.mod.

    For a module without releases, it is the pseudo-version of a commit. Raises RehearsalError.
    """
    return read_go_module(project_root / "tools" / module).providing(package)[1]


def pinned_version(project_root: Path, module: str, package: str) -> Version:
    """Return the release of the module that contains `package` in tools/`module`/go.mod. Raises RehearsalError."""
    return released(pinned_text(project_root, module, package), f"{package} in tools/{module}/go.mod")


def released(text: str, where: str) -> Version:
    """Return a released version. Raises RehearsalError for any other text; `where` says what has it."""
    found = parse_version(text)
    if found is None:
        raise RehearsalError(f"{where} has {text}, which is no release; choose a release like v1.2.3")
    return found


#: The flags of every build. Without cgo, all programs share one set of standard packages and need no C compiler. DWARF
#: and symbols are not needed, and linking them takes seconds per program.
BUILD_FLAGS = ("-buildvcs=false", "-mod=readonly", "-pgo=off")
LINK_FLAGS = ("-s", "-w")

_KUBERNETES_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One program, built from a Go package.

    `module` is the folder in tools/ whose go.mod pins the program. For a package `./folder` of this project,
    `version_of` is the package that has the version. `asks` are the arguments that print the version; None if the
    program cannot print it, which excludes a program on PATH. `stamps` are the link-time variables of the version, with
    {version}, {major} and {minor}. `idle` are linked packages that never run; they compile faster without inlining.
    `sdk` is the Python package whose version the engine asks for, where the Go module has no releases. `embeds` is a file
    of that module; the build adds it to the folder of this project's package.
    """

    name: str
    module: str
    package: str
    version_of: str | None = None
    asks: tuple[str, ...] | None = None
    accepts: Accepts = Accepts.EXACT
    stamps: tuple[str, ...] = ()
    idle: tuple[str, ...] = ()
    sdk: str | None = None
    embeds: PurePosixPath | None = None

    def pin(self, project_root: Path) -> Version:
        """The version in the go.mod of this tool, or of its SDK."""
        if self.sdk is not None:
            return released(version(self.sdk), f"the installed {self.sdk}")
        return pinned_version(project_root, self.module, self.version_of or self.package)

    def own_sources(self, project_root: Path) -> list[Path]:
        """The source files of this project in the program; none for an upstream program."""
        if not self.package.startswith("./"):
            return []
        return sorted((project_root / "tools" / self.module / self.package).glob("*.go"))

    def build_flags(self, pin: Version) -> tuple[str, ...]:
        """The flags of `go build`, including the version."""
        idle = (f"-gcflags={pattern}=-l" for pattern in self.idle)
        return (*BUILD_FLAGS, *idle, f"-ldflags={self._link_flags(pin)}")

    def _link_flags(self, pin: Version) -> str:
        values = (f"-X {stamp}" for stamp in self.stamps)
        return " ".join((*LINK_FLAGS, *values)).format(
            version=f"v{pin}", major=pin.major, minor=pin.minor, patch=pin.patch
        )


def _kubernetes(name: str) -> Tool:
    # Without the stamp, the version is v0.0.0, and clients refuse it because of the version skew.
    return Tool(
        name=name,
        module="kubernetes",
        package=f"k8s.io/kubernetes/cmd/{name}",
        asks=("--version",),
        stamps=(
            f"{_KUBERNETES_VERSION}.gitVersion={{version}}",
            f"{_KUBERNETES_VERSION}.gitMajor={{major}}",
            f"{_KUBERNETES_VERSION}.gitMinor={{minor}}",
        ),
    )


#: In build order: an earlier program of a module compiles packages that later ones share.
TOOLS = (
    _kubernetes("kube-apiserver"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-scheduler"),
    Tool(name="etcd", module="kubernetes", package="go.etcd.io/etcd/server/v3", asks=("--version",)),
    Tool(name="kwok", module="kubernetes", package="sigs.k8s.io/kwok/cmd/kwok", asks=("--version",)),
    Tool(name="kwokctl", module="kubernetes", package="sigs.k8s.io/kwok/cmd/kwokctl", asks=("--version",)),
    Tool(name="karpenter-kwok", module="karpenter", package="./kwok", version_of="sigs.k8s.io/karpenter"),
    Tool(name="jobset-controller", module="kubernetes", package="sigs.k8s.io/jobset"),
    Tool(
        name="helm",
        module="kubernetes",
        package="helm.sh/helm/v4/cmd/helm",
        asks=("version", "--short"),
        accepts=Accepts.SAME_MAJOR,
        stamps=("helm.sh/helm/v4/internal/version.version={version}",),
    ),
    Tool(
        name="pulumi",
        module="pulumi",
        package="github.com/pulumi/pulumi/pkg/v3/cmd/pulumi",
        asks=("version",),
        accepts=Accepts.SAME_MAJOR,
        stamps=("github.com/pulumi/pulumi/sdk/v3/go/common/version.Version={version}",),
        # A quarter of the build of pulumi, for commands of its cloud service: 75 s instead of 126 s of CPU.
        idle=("github.com/pb33f/libopenapi/...",),
    ),
    Tool(
        name="pulumi-resource-kubernetes",
        module="pulumi-kubernetes",
        package="./",
        version_of="github.com/pulumi/pulumi-kubernetes/provider/v4",
        stamps=("main.version={major}.{minor}.{patch}",),
        sdk="pulumi-kubernetes",
        embeds=PurePosixPath("cmd/pulumi-resource-kubernetes/schema.json"),
    ),
    Tool(name="kuberay-operator", module="kuberay", package="github.com/ray-project/kuberay/ray-operator"),
    Tool(
        name="actionlint",
        module="actionlint",
        package="github.com/rhysd/actionlint/cmd/actionlint",
        asks=("-version",),
    ),
)

#: Modules of one chain share packages and are built in sequence; the chains run in parallel.
CHAINS = (("kubernetes", "karpenter"), ("pulumi", "pulumi-kubernetes", "kuberay", "actionlint"))


#: kubectl is not built: it comes with a locked Python package, in the folder of the interpreter.
KUBECTL = "kubectl"


def tool_named(name: str) -> Tool:
    """Return the built tool with this name. Raises RehearsalError with the known names."""
    for tool in TOOLS:
        if tool.name == name:
            return tool
    known = ", ".join(sorted((*(tool.name for tool in TOOLS), KUBECTL)))
    raise RehearsalError(f"{name!r} is no tool of this project; use one of {known}")
