"""The commands of the rehearsal on the real engine: preview, up, refresh, destroy, and what they print."""

import asyncio
import socket
from collections.abc import Callable
from pathlib import Path

import pulumi
import pytest

from pulumi_holdfast.ladder.errors import ConfigError, Problem
from pulumi_holdfast.rehearsal.engine import EngineFailure
from pulumi_holdfast.rehearsal.engine.workspace import EngineFolder
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.lifecycle.checks import names, protected, retained
from tests.support.builders.engine_records import write_lock
from tests.support.clusters.control_plane import CHECKOUT, scratch_workspace
from tests.support.clusters.simulated_program import a_pack, a_target, network, run
from tests.support.command_line import at_a_terminal, command, press_ctrl_c, refusal

pytestmark = [pytest.mark.engine, pytest.mark.timeout(120)]


_SECRET = "hunter2-and-no-other"


def _nothing() -> None:
    """Register nothing."""


def _a_secret() -> None:
    import pulumi_aws as aws

    secret = pulumi.Output.secret(_SECRET)
    aws.ssm.Parameter("key", type="SecureString", value=secret)
    pulumi.export("login", {"user": "me", "password": secret})


_PROBLEM = Problem(field="cloud", value="ibm", allowed="aws", fix="Write `cloud: aws`.")


def _no_config() -> None:
    raise ConfigError([_PROBLEM])


def _a_fault() -> None:
    raise ValueError("boo")


def _a_late_fault() -> None:
    def fail(_: str) -> str:
        raise ValueError("late boo")

    pulumi.export("late", pulumi.Output.from_input("x").apply(fail))


def _a_vpc_and_no_end() -> None:
    import pulumi_aws as aws

    aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
    if pulumi.runtime.is_dry_run():  # the preview before `up` ends as any other
        return
    pulumi.export("never", pulumi.Output.from_input(asyncio.get_running_loop().create_future()))


def _lock_folder(root: Path) -> Path:
    return EngineFolder.of("dev", a_target(root, _nothing).workspace).locks("holdfast", "dev")


def test_a_preview_shows_the_plan_and_creates_nothing(tmp_path: Path) -> None:
    stage, shown = a_target(tmp_path, network), list[str]()
    outcome = run(stage, lambda rehearsal: rehearsal.preview(), show=shown.append)
    assert outcome.changes == {"create": 7}
    assert any("aws:ec2:Vpc network create" in line for line in shown)
    assert outcome.outputs == {"vpc": "[unknown]"}, "an id cannot be known yet"
    assert stage.checkpoint().resources == ()


def test_up_creates_a_second_up_changes_nothing_and_destroy_deletes(tmp_path: Path) -> None:
    stage = a_target(tmp_path, network)
    types = frozenset({"aws:ec2/vpc:Vpc", "aws:s3/bucket:Bucket"})
    assert run(stage, lambda rehearsal: rehearsal.up()).changes == {"create": 7}
    assert run(stage, lambda rehearsal: rehearsal.up()).changed == 0
    assert run(stage, lambda rehearsal: rehearsal.refresh()).changed == 0
    assert len(stage.objects(types)) == 2
    assert run(stage, lambda rehearsal: rehearsal.destroy()).changes == {"delete": 7}
    assert stage.objects(types) == ()


def test_a_secret_is_not_printed_nor_stored_in_plain_text(tmp_path: Path) -> None:
    stage, shown = a_target(tmp_path, _a_secret), list[str]()
    outcome = run(stage, lambda rehearsal: rehearsal.up(), show=shown.append)
    assert outcome.outputs == {"login": {"user": "me", "password": "[secret]"}}
    assert not any(_SECRET in line for line in shown)
    folder = EngineFolder.of("dev", stage.workspace)
    files = [
        file
        for part in (folder.state, folder.project, folder.home)
        for file in part.rglob("*")
        if file.is_file()
    ]
    leaks = [file for file in files if _SECRET in file.read_text(errors="ignore")]
    assert leaks == []


def test_a_secret_survives_from_run_to_run(tmp_path: Path) -> None:
    stage = a_target(tmp_path, _a_secret)
    run(stage, lambda rehearsal: rehearsal.up())
    assert run(stage, lambda rehearsal: rehearsal.up()).changed == 0, "the state could not be decrypted again"


def test_settings_of_the_users_engine_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PULUMI_BACKEND_URL", "https://api.example.invalid")
    monkeypatch.setenv("PULUMI_ACCESS_TOKEN", "pul-0000")
    monkeypatch.setenv("PULUMI_STACK", "prod")
    outcome = run(a_target(tmp_path, _nothing, packages=()), lambda rehearsal: rehearsal.preview())
    assert outcome.changes == {"create": 1}


@pytest.mark.parametrize(
    ("program", "said"),
    [
        (_no_config, str(_PROBLEM)),
        (_a_fault, "the program failed: ValueError: boo"),
        (_a_late_fault, "late boo"),
    ],
    ids=["a refused configuration", "a fault", "a fault in a computed value"],
)
def test_a_failing_program_is_one_message_without_a_traceback(
    tmp_path: Path, program: Callable[[], None], said: str
) -> None:
    stage, shown = a_target(tmp_path, program, packages=()), list[str]()
    with pytest.raises(EngineFailure) as failed:
        run(stage, lambda rehearsal: rehearsal.up(), show=shown.append)
    assert said in str(failed.value)
    assert str(failed.value).count(said) == 1
    assert "Traceback" not in "\n".join([str(failed.value), *shown])


def test_the_traceback_of_a_fault_is_kept_in_a_file(tmp_path: Path) -> None:
    with pytest.raises(EngineFailure, match=r"program\.log"):
        run(a_target(tmp_path, _a_fault, packages=()), lambda rehearsal: rehearsal.preview())
    log = tmp_path / ".rehearsal" / "dev" / "logs" / "program.log"
    assert "in _a_fault" in log.read_text()


def test_a_violated_mandatory_policy_stops_the_run(tmp_path: Path) -> None:
    stage = a_target(tmp_path, network, policy_packs=(a_pack(tmp_path / "pack", "MANDATORY"),))
    with pytest.raises(EngineFailure, match="mandatory policies are violated: no-vpc") as failed:
        run(stage, lambda rehearsal: rehearsal.preview())
    (verdict,) = failed.value.outcome.verdicts
    assert (verdict.policy, verdict.level) == ("no-vpc", "mandatory")
    assert "one too many" in verdict.message


def test_a_violated_advisory_policy_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    stage = a_target(tmp_path, network, policy_packs=(a_pack(tmp_path / "pack", "ADVISORY"),))
    outcome = run(stage, lambda rehearsal: rehearsal.preview())
    assert [verdict.stops for verdict in outcome.verdicts] == [False]
    assert list(outcome.packs) == ["strict"]


def test_the_run_after_an_interrupted_one_continues(tmp_path: Path) -> None:
    def once_made(line: str) -> None:
        if "network created" in line:
            press_ctrl_c()

    with at_a_terminal(), pytest.raises(KeyboardInterrupt):
        run(a_target(tmp_path, _a_vpc_and_no_end), lambda rehearsal: rehearsal.up(), show=once_made)
    stage = a_target(tmp_path, network)
    assert [one.id for one in stage.checkpoint().resources if one.type == "aws:ec2/vpc:Vpc"] != []
    assert list(_lock_folder(tmp_path).glob("*.json")) == []
    assert run(stage, lambda rehearsal: rehearsal.up()).changes == {"create": 5, "same": 2}


def test_the_lock_of_a_killed_run_does_not_stop_the_next(tmp_path: Path) -> None:
    write_lock(_lock_folder(tmp_path), pid=2**22 + 1, hostname=socket.gethostname(), written=1.0)
    outcome = run(a_target(tmp_path, _nothing, packages=()), lambda rehearsal: rehearsal.up())
    assert outcome.changes == {"create": 1}, "a human would have to remove the lock"


def test_the_lock_of_a_living_run_stops_the_next_with_its_process(tmp_path: Path) -> None:
    write_lock(_lock_folder(tmp_path), pid=7, hostname="elsewhere", written=1.0)
    with pytest.raises(RehearsalError, match="locked by process 7 on elsewhere"):
        run(a_target(tmp_path, _nothing, packages=()), lambda rehearsal: rehearsal.up())


def _project(root: Path, platform: str) -> Path:
    scratch_workspace(root)
    (root / "Pulumi.yaml").write_text("name: holdfast\nruntime: python\nstackConfigDir: stacks\n")
    (root / "stacks").mkdir()
    (root / "stacks" / "Pulumi.local.yaml").write_text(f"config:\n  holdfast:platform: {platform}\n")
    return root


def test_an_unknown_stack_is_rejected_with_the_existing_ones(tmp_path: Path) -> None:
    said = refusal(_project(tmp_path, "{cloud: local}"), "rehearse", "prod")
    assert "no stack 'prod'" in said
    assert "stacks: local" in said


@pytest.mark.parametrize("verb", ["run", "preview", "up", "refresh", "destroy", "down"])
def test_an_invalid_configuration_is_reported_before_any_start(tmp_path: Path, verb: str) -> None:
    said = refusal(_project(tmp_path, "{cloud: ibm}"), "rehearse", verb, "local")
    assert "holdfast:platform.cloud" in said
    assert not (tmp_path / ".rehearsal").exists(), "something was made for a stack that cannot be"


def test_outside_a_project_the_command_names_the_missing_file(tmp_path: Path) -> None:
    assert "Pulumi.yaml" in refusal(tmp_path, "rehearse", "up", "local")


def test_down_of_a_stack_that_was_never_up_succeeds(tmp_path: Path) -> None:
    platform = (CHECKOUT / "stacks" / "Pulumi.local.yaml").read_text()
    root = _project(tmp_path, "{}")
    (root / "stacks" / "Pulumi.local.yaml").write_text(platform)
    for options in ((), ("--force",)):
        ended = command(root, "rehearse", "down", "local", *options)
        assert ended.returncode == 0, f"nothing is there to fail at: {ended.stderr}"
        assert "no process of it is left" in ended.stdout


_BUCKET = "aws:s3/bucket:Bucket"
_ALL = frozenset({_BUCKET, "aws:ec2/vpc:Vpc", "aws:ec2/subnet:Subnet"})


def _platform(*, is_protected: bool, is_retained: bool = False) -> Callable[[], None]:
    def program() -> None:
        import pulumi_aws as aws

        vpc = aws.ec2.Vpc("network", cidr_block="10.0.0.0/16")
        aws.ec2.Subnet("zone-a", vpc_id=vpc.id, cidr_block="10.0.0.0/24")
        kept = pulumi.ResourceOptions(protect=is_protected, retain_on_delete=is_retained)
        aws.s3.Bucket("checkpoints", opts=kept)

    return program


def test_a_destroy_of_a_protected_stack_deletes_nothing(tmp_path: Path) -> None:
    stage = a_target(tmp_path, _platform(is_protected=True))
    run(stage, lambda rehearsal: rehearsal.up())
    before = stage.checkpoint()
    assert names(protected(before)) == ["checkpoints"]
    with pytest.raises(EngineFailure, match="protected"):
        run(stage, lambda rehearsal: rehearsal.destroy())
    assert len(stage.objects(_ALL)) == 3
    assert len(stage.checkpoint().resources) == len(before.resources)


def test_without_protection_it_is_destroyed(tmp_path: Path) -> None:
    run(a_target(tmp_path, _platform(is_protected=True)), lambda rehearsal: rehearsal.up())
    lifted = a_target(tmp_path, _platform(is_protected=False))
    run(lifted, lambda rehearsal: rehearsal.up())
    assert protected(lifted.checkpoint()) == []
    run(lifted, lambda rehearsal: rehearsal.destroy())
    assert lifted.objects(_ALL) == ()


def test_retained_resources_exist_after_a_destroy(tmp_path: Path) -> None:
    stage = a_target(tmp_path, _platform(is_protected=False, is_retained=True))
    run(stage, lambda rehearsal: rehearsal.up())
    kept = retained(stage.checkpoint())
    assert [urn.rsplit("::", 1)[-1] for urn in kept] == ["checkpoints"], "it would be taken for an orphan"
    run(stage, lambda rehearsal: rehearsal.destroy())
    (left,) = stage.objects(_ALL)
    assert left.startswith(next(iter(kept)))
