"""A checkout in a temporary folder with the real pins, and a fake `go` that compiles nothing."""

import shutil
from dataclasses import dataclass
from pathlib import Path

from pulumi_holdfast.rehearsal.paths import Workspace

PROJECT = Path(__file__).parents[3]

_GO = """\
#!/bin/sh
echo "$*" >> "{calls}"
case "$1" in
  build)
    package=""
    while [ $# -gt 0 ]; do
      case "$1" in -o) out="$2"; shift ;; esac
      package="$1"; shift
    done
    if [ -f "{folder}/fails" ]; then cat "{folder}/fails" >&2; exit 1; fi
    if [ -f "{folder}/hangs" ]; then sleep 60; fi
    echo "some/package" >&2
    echo "built $package" > "$out" ;;
  mod)
    for module; do :; done
    printf '{{"Dir": "%s"}}' "{folder}/modules/$module" ;;
esac
"""


def executable(path: Path, script: str) -> Path:
    """Write an executable program."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script, encoding="utf-8")
    path.chmod(0o755)
    return path


def program_printing(path: Path, answer: str) -> Path:
    """Write a program that always prints the same line."""
    return executable(path, f"#!/bin/sh\necho '{answer}'\n")


def checkout(folder: Path) -> Workspace:
    """Create a checkout with the pins of the project and without built tools."""
    (folder / "Pulumi.yaml").write_text("name: holdfast\n", encoding="utf-8")
    shutil.copytree(PROJECT / "tools", folder / "tools")
    return Workspace(project_root=folder)


@dataclass(frozen=True, kw_only=True)
class FakeGo:
    """A fake `go` on its own PATH, which records its arguments in `calls`."""

    folder: Path

    @classmethod
    def install(cls, folder: Path) -> "FakeGo":
        """Write the program, and modules with charts."""
        folder.mkdir(parents=True, exist_ok=True)
        executable(folder / "bin" / "go", _GO.format(folder=folder, calls=folder / "calls"))
        chart(folder / "modules/sigs.k8s.io/jobset/charts/jobset", crds=("jobsets",))
        chart(
            folder / "modules/github.com/ray-project/kuberay/helm-chart/kuberay-operator", crds=("rayjobs",)
        )
        chart(folder / "modules/sigs.k8s.io/karpenter/kwok/charts", crds=("nodepools",))
        crd(folder / "modules/sigs.k8s.io/karpenter/kwok/apis/crds", "kwoknodeclasses")
        aws = folder / "modules/github.com/aws/karpenter-provider-aws"
        chart(aws / "charts/karpenter", values=KARPENTER_VALUES)
        crd(aws / "pkg/apis/crds", "ec2nodeclasses")
        azure = folder / "modules/github.com/Azure/karpenter-provider-azure"
        chart(azure / "charts/karpenter")
        crd(azure / "pkg/apis/crds", "aksnodeclasses")
        nvidia = folder / "modules/github.com/NVIDIA/k8s-device-plugin"
        chart(nvidia / "deployments/helm/nvidia-device-plugin")
        chart(folder / "modules/github.com/aws/eks-charts/stable/aws-efa-k8s-device-plugin")
        return cls(folder=folder)

    @property
    def path(self) -> str:
        """The PATH with the fake and the programs of the system."""
        return f"{self.folder / 'bin'}:/usr/bin:/bin"

    @property
    def built(self) -> list[str]:
        """The built packages, sorted."""
        calls = (self.folder / "calls").read_text(encoding="utf-8").splitlines()
        return sorted(call.split()[-1] for call in calls if call.startswith("build"))

    def forget(self) -> None:
        """Clear the recorded arguments."""
        (self.folder / "calls").write_text("", encoding="utf-8")

    def fails_with(self, output: str) -> None:
        """Make builds print this and fail."""
        (self.folder / "fails").write_text(output, encoding="utf-8")

    def works(self) -> None:
        """Make builds succeed again."""
        (self.folder / "fails").unlink()

    def hangs(self) -> None:
        """Make a build take a minute."""
        (self.folder / "hangs").touch()


#: The values of an unpublished chart, with the image of an earlier release.
KARPENTER_VALUES = """\
controller:
  image:
    repository: example.com/controller
    tag: 1.0.0
    digest: sha256:0123
"""


def chart(folder: Path, crds: tuple[str, ...] = (), values: str = "") -> None:
    """Write an upstream chart, read-only like in the module cache."""
    folder.mkdir(parents=True)
    described = f"name: {folder.name}\nversion: 1.0.0\nappVersion: 1.0.0\n"
    for name, text in (("Chart.yaml", described), ("values.yaml", values)):
        (folder / name).write_text(text, encoding="utf-8")
        (folder / name).chmod(0o444)
    for name in crds:
        crd(folder / "crds", name)


def crd(folder: Path, name: str) -> None:
    """Write one CRD file."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.yaml").write_text(f"kind: CustomResourceDefinition\nname: {name}\n", encoding="utf-8")
