"""What is rehearsed: a program, its settings and the providers it uses."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from holdfast.scheduling.json import Json
from holdfast.simulator.paths import Workspace
from holdfast.simulator.pulumi.settings import read_yaml, stack_file


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A program and what the engine needs to run it.

    Arguments: `program`, registers the resources; `project` and `settings`, the content of Pulumi.yaml and of
    the stack's file; `packages`, the providers it uses, by Pulumi's names; `policy_packs`, folders, and
    `policy_settings`, a file for each of them or none at all;
    `cloud`, where its platform is; `protected`, whether its engine is to refuse a destroy;
    `own_plugins`, packages of which the user's own plugin, where it is installed, is as good as the stand-in.
    """

    program: Callable[[], None]
    project: Json
    settings: Json
    packages: tuple[str, ...]
    policy_packs: tuple[Path, ...] = field(default=())
    policy_settings: tuple[Path, ...] = field(default=())
    cloud: str = ""
    protected: bool = False
    own_plugins: frozenset[str] = frozenset()

    @classmethod
    def holdfast(cls, stack: str, workspace: Workspace) -> "Subject":
        """Return this project's own program with a stack's configuration and the policy pack.

        Raises ConfigError for a configuration the program would refuse, RehearsalError for an unknown stack.
        """
        # Here and not above: a program brings its providers' SDKs, half a second and 50 MB for a cloud's.
        from holdfast.infra.program import load_platform, provider_packages, run

        file = stack_file(stack, workspace)
        platform = load_platform(file)
        is_local = platform.cloud == "local"
        return cls(
            program=run,
            project=read_yaml(workspace.project_root / "Pulumi.yaml"),
            settings=read_yaml(file),
            packages=provider_packages(platform),
            policy_packs=(workspace.project_root / "policies",),
            cloud=platform.cloud,
            protected=getattr(platform, "protected", False) is True,
            # Its kubeconfig is that of the control plane here. A cloud's would be a stand-in's, and lead nowhere.
            own_plugins=frozenset({"kubernetes"} if is_local else ()),
        )

    @property
    def name(self) -> str:
        """The project's name."""
        return str(self.project["name"])
