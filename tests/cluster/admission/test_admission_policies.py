"""What `holdfast policies admission` prints is in force on a real API server that has no component of this repository."""

import shlex
import subprocess
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.cli.admission_policies.manifests import admission_manifests
from pulumi_holdfast.cli.admission_policies.program import read_program
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import ARCH, CAPACITY_TYPE, INSTANCE_TYPE, TRAINING, TRAINING_VALUE, ZONE
from pulumi_holdfast.ladder.reachability import messages
from pulumi_holdfast.ladder.taints import SPOT
from pulumi_holdfast.rehearsal.kubernetes_client.client import KubeClient
from pulumi_holdfast.rehearsal.kubernetes_client.errors import KubeError
from tests.support.builders.training_jobs import expression, jobset, required_affinity
from tests.support.clusters.admission import make_namespace, wait_until_enforced
from tests.support.clusters.control_plane import CHECKOUT, running_control_plane
from tests.support.clusters.job_admission import admitted_job, define_kinds, gang, told, training
from tests.support.json_objects import obj
from tests.unit.cli.admission_policies.test_admission_policies import LADDER, POOLS, ZONES

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

NAMESPACE = "vision"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The manifests of a program: two NodePools and a ladder."""
    file = tmp_path_factory.mktemp("program") / "program.yaml"
    file.write_text(yaml.safe_dump_all([LADDER, *POOLS]), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> Generator[Path]:
    """That of a cluster without any object of this repository."""
    with running_control_plane(tmp_path_factory.mktemp("admission-policies")) as workspace:
        yield workspace.kubeconfig("local")


@pytest.fixture(scope="module")
def client(kubeconfig: Path, program: Path) -> Generator[KubeClient]:
    """The cluster, with the admission policies of the program."""
    with closing(KubeClient.from_kubeconfig(kubeconfig)) as found:
        define_kinds(found)
        make_namespace(found, NAMESPACE, {TRAINING: TRAINING_VALUE})
        for manifest in admission_manifests(read_program([program])):
            found.apply(manifest, field_manager="tests", force=True)
        wait_until_enforced(found, lambda client: "fits a pod" in refusal(client, job(cpu="9000")))
        yield found


def job(
    pods: int = 2,
    *,
    cpu: str = "48",
    tolerates: bool = True,
    selector: Mapping[str, str] | None = None,
    zones: Sequence[str] = (),
) -> Json:
    """A job on spot, whose author writes the toleration where nothing adds it; with `zones` it requires one of them."""
    spec: Json = {
        **({"tolerations": [SPOT.as_toleration()]} if tolerates else {}),
        **({"affinity": required_affinity([expression(ZONE, "In", *zones)])} if zones else {}),
    }
    selected = {CAPACITY_TYPE: SPOT.value, **(selector or {})}
    return jobset(gang(training(selected, cpu=cpu, spec=spec), pods), namespace=NAMESPACE)


def refusal(client: KubeClient, job: Json) -> str:
    """In which words a job is rejected; empty if it is admitted."""
    try:
        admitted_job(client, job)
    except KubeError as error:
        return told(str(error)) if "can-fall-back" in str(error) else ""
    return ""


def test_job_that_can_fall_back_is_admitted_and_follows(client: KubeClient) -> None:
    admitted = admitted_job(client, job())
    assert obj(obj(admitted["metadata"])["labels"])["holdfast.dev/fallback"] == "true", (
        "the controller moves it"
    )


def test_job_that_cannot_fall_back_is_rejected_in_the_words_of_the_pack(client: KubeClient) -> None:
    too_many = messages.TOO_MANY.reason.format(room=2, pods=4)
    assert too_many in refusal(client, job(4)), "192 CPUs are two machines, with a pod on each"
    taint = messages.TAINT.reason.format(taint=f"{SPOT.key}={SPOT.value}:{SPOT.effect}")
    assert refusal(client, job(tolerates=False)) == "", "the wait for tier 1 ends, and tier 2 has no taint"
    assert taint not in refusal(client, job(4, tolerates=False)), "only the tier on which it ends is reported"


def test_job_that_selects_what_no_machine_of_its_ladder_has_is_rejected(client: KubeClient) -> None:
    for key, there, other in (
        (INSTANCE_TYPE, ["p4d.24xlarge"], "p5.48xlarge"),
        (ARCH, ["amd64"], "arm64"),
        (ZONE, ZONES, "us-east-1f"),
    ):
        reason = messages.SELECTOR.reason.format(
            key=key, value=other, has=messages.OTHER_LABEL.format(key=key, there=" or ".join(there))
        )
        assert reason in refusal(client, job(selector={key: other})), "the pack says the same of a shape"
        for value in there:
            assert refusal(client, job(selector={key: value})) == "", "the machines have it"


def test_job_that_requires_a_zone_of_no_tier_by_affinity_is_rejected(client: KubeClient) -> None:
    reason = messages.AFFINITY.reason.format(keys=ZONE)
    assert reason in refusal(client, job(zones=["us-east-1e", "us-east-1f"])), "no node is in either"
    assert refusal(client, job(zones=["us-east-1f", ZONES[1]])) == "", "the pools have nodes in one of them"


def sections(page: str) -> Mapping[str, tuple[Sequence[str], ...]]:
    """The commands of each block of a section, by its title."""
    return {
        section.partition("\n")[0]: tuple(
            [line for line in block.splitlines() if line.startswith("kubectl ")]
            for block in section.split("```")[1::2]
        )
        for section in page.split("\n## ")[1:]
    }


@pytest.mark.parametrize("title", ["One namespace", "The whole cluster"])
def test_commands_of_the_emergency_page_let_jobs_in_and_are_undone(
    client: KubeClient, kubeconfig: Path, title: str
) -> None:
    done, undone = sections((CHECKOUT / "docs" / "emergencies.md").read_text("utf-8"))[title]
    assert refusal(client, job(4)), "the admission policy rejects it"
    for commands, is_admitted in ((done, True), (undone, False)):
        for command in commands:
            subprocess.run(
                [*shlex.split(command), f"--kubeconfig={kubeconfig}"], check=True, capture_output=True
            )
        wait_until_enforced(
            client, lambda found, wanted=is_admitted: (refusal(found, job(4)) == "") is wanted
        )


def test_admission_policies_that_warn_reject_nothing(client: KubeClient, program: Path) -> None:
    assert refusal(client, job(4)), "the admission policy rejects it"
    warning = [
        each
        for each in admission_manifests(read_program([program]), warn=True)
        if "Binding" in str(each["kind"])
    ]
    for manifest in warning:
        metadata, spec = obj(manifest["metadata"]), obj(manifest["spec"])
        client.merge_patch(
            str(manifest["apiVersion"]), str(manifest["kind"]), str(metadata["name"]), {"spec": spec}
        )
    wait_until_enforced(client, lambda found: refusal(found, job(4)) == "")
