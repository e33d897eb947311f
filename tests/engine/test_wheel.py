"""The wheel installs one name, holds every data file, and works beside a user's own `components` folder."""

import os
import subprocess
import sys
import zipfile
from collections.abc import Generator, Iterator
from concurrent import futures
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Final

import grpc
import pytest
import yaml
from pulumi.automation._server import LanguageServer
from pulumi.runtime.proto import language_pb2
from pulumi.runtime.proto.language_pb2_grpc import add_LanguageRuntimeServicer_to_server
from uv import find_uv_bin

from pulumi_holdfast.ladder.json import mapping
from pulumi_holdfast.rehearsal.paths import Workspace
from pulumi_holdfast.rehearsal.tools.locate import find_tool

ROOT: Final = Path(__file__).parents[2]
#: What a wheel carries of the repository beside the package, below `repository/`.
BESIDE: Final = ("examples/aws", "examples/azure", "examples/gcp", "examples/local", "policies", "tools")

#: A user's program: their own `components` package stands first on the import path, as in any Pulumi project.
PROGRAM: Final = """
import asyncio

import pulumi
from pulumi.runtime import MockCallArgs, MockResourceArgs, Mocks, set_mocks, test


class Recorder(Mocks):
    def new_resource(self, args: MockResourceArgs):
        print(args.typ)
        return f"{args.name}-id", args.inputs

    def call(self, args: MockCallArgs):
        return {}


set_mocks(Recorder(), preview=True)

import components
from pulumi_holdfast.kubernetes.karpenter_pool import KarpenterPool, KarpenterPoolArgs
from pulumi_holdfast.kubernetes.karpenter_pool import KWOK
from pulumi_holdfast.ladder.labels import CapacityType
from pulumi_holdfast.ladder.machines import machine_catalogue
from pulumi_holdfast.ladder.pools import Pool

assert components.OWNER == "the user"


@test
def preview():
    KarpenterPool(
        "spot",
        KarpenterPoolArgs(
            pool=Pool(name="spot", capacity=CapacityType.SPOT, has_gpus=False, max_nodes=4),
            machines=[machine_catalogue("aws")["m7i.xlarge"]],
            node_class=KWOK,
            weight=1,
        ),
    )


preview()
"""


def run(*command: str, cwd: Path) -> str:
    answer = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    assert answer.returncode == 0, f"{' '.join(command)}: {answer.stdout}{answer.stderr}"
    return answer.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from a copy of what git tracks."""
    source = tmp_path_factory.mktemp("source")
    tracked = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    archive = subprocess.run(
        ["tar", "--create", "--null", "--files-from=-", "--ignore-failed-read"],
        cwd=ROOT,
        input=tracked,
        capture_output=True,
        check=True,
    ).stdout
    subprocess.run(["tar", "--extract"], cwd=source, input=archive, check=True)
    built = tmp_path_factory.mktemp("wheel")
    code = f"from hatchling.build import build_wheel; build_wheel({str(built)!r})"
    run(sys.executable, "-c", code, cwd=source)
    (found,) = built.glob("*.whl")
    return found


def test_the_wheel_installs_one_top_level_name(wheel: Path) -> None:
    names = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"pulumi_holdfast"}, (
        "any other name would shadow a user's own package"
    )


def test_the_wheel_holds_every_source_and_data_file(wheel: Path) -> None:
    packed = {name.removeprefix("pulumi_holdfast/") for name in zipfile.ZipFile(wheel).namelist()}
    package = run("git", "ls-files", "components/pulumi_holdfast", cwd=ROOT).splitlines()
    beside = run("git", "ls-files", *BESIDE, cwd=ROOT).splitlines()
    wanted = {name.removeprefix("components/pulumi_holdfast/") for name in package if (ROOT / name).is_file()}
    wanted |= {f"repository/{name}" for name in beside if (ROOT / name).is_file()}
    assert sum(not name.endswith(".py") for name in wanted) > 30
    assert wanted - packed == set(), "a part would fail in an installed package"
    assert "py.typed" in packed, "type checkers would ignore the annotations"


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of an environment with the wheel, as a new project installs it."""
    folder = tmp_path_factory.mktemp("environment")
    uv, environment = find_uv_bin(), folder / "venv"
    run(uv, "venv", "--quiet", "--python", sys.executable, str(environment), cwd=folder)
    constraints = ["--constraints", str(ROOT / "requirements.lock")]
    python = ["--python", str(environment / "bin" / "python")]
    run(uv, "pip", "install", "--quiet", *python, *constraints, f"{wheel}[aws,rehearsal]", cwd=folder)
    return environment / "bin"


def with_components(project: Path) -> Path:
    """A project whose user has a package `components`."""
    (project / "components").mkdir(parents=True)
    (project / "components" / "__init__.py").write_text('OWNER = "the user"\n')
    return project


@pytest.mark.registry
def test_an_installed_pool_previews_beside_a_users_own_components(installed: Path, tmp_path: Path) -> None:
    project = with_components(tmp_path / "project")
    (project / "program.py").write_text(PROGRAM)
    printed = run(str(installed / "python"), "program.py", cwd=project)
    assert "kubernetes:karpenter.sh/v1:NodePool" in printed


class Python(LanguageServer):
    """Answers what `pulumi new` asks the host of a language, and installs no package."""

    def Handshake(self, request: object, context: object) -> language_pb2.LanguageHandshakeResponse:  # noqa: N802 - the protocol's name
        return language_pb2.LanguageHandshakeResponse()

    def RuntimeOptionsPrompts(self, request: object, context: object) -> language_pb2.RuntimeOptionsResponse:  # noqa: N802 - the protocol's name
        return language_pb2.RuntimeOptionsResponse()

    def InstallDependencies(self, request: object, context: object) -> Iterator[object]:  # noqa: N802 - the protocol's name
        return iter(())


@contextmanager
def language_host() -> Generator[int]:
    """The port of a host for Python."""
    with futures.ThreadPoolExecutor(4) as workers:
        server = grpc.server(workers)
        add_LanguageRuntimeServicer_to_server(Python(lambda: None), server)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        yield port
        server.stop(grace=None).wait()


def new_project(folder: Path, cloud: str = "aws") -> Path:
    """What `pulumi new` makes of a template, with the tools that a rehearsal needs, beside the user's own `components`."""
    project, workspace = folder / "training", Workspace(project_root=ROOT)
    pulumi = find_tool("pulumi", workspace)
    words = [
        "new",
        str(ROOT / "templates" / cloud),
        "--offline",
        "--yes",
        "--name",
        "training",
        "--stack",
        "dev",
    ]
    answers = ["--config", "gcp:project=holdfast-dev"] if cloud == "gcp" else []
    with language_host() as port:
        settings = {
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_DEBUG_LANGUAGES": f"python:{port}",
        }
        made = subprocess.run(
            [pulumi, *words, *answers, "--dir", str(project)],
            capture_output=True,
            check=False,
            text=True,
            env={**os.environ, **settings},
        )
    assert made.returncode == 0
    # As the archive of a release: built elsewhere. What the wheel's own pins do not match would be built again.
    tools = project / f".cache/holdfast/tools-{version('pulumi-holdfast')}"
    tools.mkdir(parents=True)
    for each in ("bin", "charts", "stamps"):
        (tools / each).symlink_to(workspace.tools_dir / each)
    return with_components(project)


def holdfast(installed: Path, project: Path, *words: str) -> str:
    """What a command of the installed package prints in a project, whose folder has the cache of the user."""
    return run(
        "env", f"XDG_CACHE_HOME={project / '.cache'}", str(installed / "holdfast"), *words, cwd=project
    )


@pytest.mark.engine
@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_pulumi_new_copies_the_template_and_saves_the_answers(cloud: str, tmp_path: Path) -> None:
    project, template = new_project(tmp_path, cloud), ROOT / "templates" / cloud
    files = {each.relative_to(template) for each in template.rglob("*") if each.is_file()}
    differing = {name for name in files if (template / name).read_bytes() != (project / name).read_bytes()}
    assert differing == {Path("Pulumi.yaml"), Path("stacks/Pulumi.dev.yaml")}
    made = mapping(yaml.safe_load((project / "Pulumi.yaml").read_text("utf-8")))
    assert made["name"] == "training"
    stack = (project / "stacks/Pulumi.dev.yaml").read_text("utf-8")
    development = mapping(yaml.safe_load((ROOT / f"stacks/Pulumi.{cloud}-dev.yaml").read_text("utf-8")))
    assert mapping(yaml.safe_load(stack))["config"] == development["config"]
    assert "# Where `pulumi up` and kubectl run" in stack


@pytest.mark.registry
@pytest.mark.engine
@pytest.mark.timeout(300)
def test_a_new_project_previews_with_the_installed_policies(installed: Path, tmp_path: Path) -> None:
    project = new_project(tmp_path)
    told = holdfast(installed, project, "tools")
    assert told.startswith("tools: nothing to make")
    printed = holdfast(installed, project, "rehearse", "preview", "dev", "--verbose")
    assert "aws:eks:Cluster" in printed
    assert "policies holdfast" in printed
    assert "no violations" in printed
    costs = holdfast(installed, project, "cost", "dev")
    assert "USD an hour at most" in costs


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_the_rehearsal_of_a_new_project_passes(installed: Path, tmp_path: Path) -> None:
    project = new_project(tmp_path)
    printed = holdfast(installed, project, "rehearse", "dev")
    assert "a second up" in printed, "the whole lifecycle"
    assert "retained: main-spot-role" in printed, "up to the destroy, which leaves nothing else"
