"""A tier in another cluster is judged by what its stack exports, and by no pool of this program that has its name."""

from collections.abc import Mapping, Sequence
from typing import Final, cast

import pytest

from pulumi_holdfast.ladder.json import UNKNOWN, Json
from pulumi_holdfast.ladder.labels import POOL
from pulumi_holdfast.program.resources import StackResource, Value, items_at
from rule import PACK_DEFAULTS
from rules.ladder_end import find_endless_waits, find_ladder_ends
from rules.reachability import find_notes, find_unreachable
from rules.verdicts import Word, verdicts
from tests.support.builders.policy_programs import program
from tests.support.builders.program_jobs import (
    RAY_JOB,
    TIERS,
    declared,
    declared_jobset,
    job_program,
    requesting,
)
from tests.support.builders.stack_resources import A100, A100_SPOT, ladder, namespace, pools, resource
from tests.support.builders.training_jobs import pod_template, rayjob, worker_group

URI: Final = "s3://checkpoints-1a2b3c/vision"
MACHINE: Final[Value] = {
    "name": "p4d.24xlarge",
    "cpu": "95",
    "memory": "1100Gi",
    "gpus": 8.0,
    "accelerator": "a100",
}
FACTS: Final[Mapping[str, Value]] = {"capacity": "on-demand", "machines": [MACHINE], "maxNodes": 8.0}
EXPORTED: Final[Mapping[str, Value]] = {
    "stack": "acme/holdfast/aws-us-east-2",
    "ladder": ["a100"],
    "checkpoints": URI,
}
#: It has the name of the last pool of this program, and is on-demand.
AWAY: Final[Mapping[str, Value]] = {
    "cluster": "us-east-2",
    "pool": "a100",
    "maxFailures": 3.0,
    "procurementTimeout": "15m",
    "facts": FACTS,
    "exported": EXPORTED,
}
#: The end of the names of the registries of a region.
ECR: Final = ".dkr.ecr.us-east-2.amazonaws.com"
TITLE: Final = "tier 2 → pool us-east-2/a100"


def away(**changed: Value) -> Mapping[str, Value]:
    """The tier with other fields, None for none."""
    return {name: value for name, value in {**AWAY, **changed}.items() if value is not None}


def stack(*tiers: Value, uri: Value = URI, shape: Value = None) -> list[StackResource]:
    """A program with pools a100-spot and a100, and a ladder of these tiers."""
    made = ladder(list(tiers))
    shapes: Value = [shape or {"name": "gang", "pods": 2, "cpu": "8", "memory": "64Gi", "gpus": 8}]
    spec: Value = {"tiers": list(tiers), "shapes": shapes}
    config: Value = {
        "metadata": {"name": "checkpoints", "namespace": "vision"},
        "data": {"CHECKPOINT_URI": uri},
    }
    assert isinstance(config, dict)
    return [
        namespace(),
        resource(made.type, "vision-ladder", {**made.props, "spec": spec}),
        *pools(),
        resource("kubernetes:core/v1:ConfigMap", "checkpoints", config),
    ]


def verdict(resources: Sequence[StackResource], about: str = TITLE) -> tuple[Word, str]:
    """The word about a part of the only namespace, and the reason."""
    (found,) = verdicts(resources, PACK_DEFAULTS)
    parts = {part.about: (part.word, part.reason) for part in found.parts}
    assert about in parts, f"{about} is judged: {found}"
    return parts[about]


@pytest.mark.parametrize(
    ("tier", "word", "reason"),
    [
        (away(), Word.PROVED, "aws-us-east-2 exports it"),
        (away(exported=None), Word.ASSUMED, "the FallbackPolicy says what its cluster has"),
        (away(facts=None, exported=None), Word.NOT_JUDGED, "nothing is known of cluster us-east-2"),
        (away(facts=None), Word.NOT_JUDGED, "Update it with this release"),
        (away(facts=UNKNOWN), Word.NOT_JUDGED, "the update will know it"),
        (away(exported=UNKNOWN), Word.NOT_JUDGED, "the update will know it"),
        (away(procurementTimeout=UNKNOWN), Word.NOT_JUDGED, "the update will know it"),
        (away(facts={**FACTS, "machines": "old"}), Word.NOT_JUDGED, "the update will not know it either"),
        (away(procurementTimeout=None), Word.BROKEN, "nothing else moves a job on"),
        (away(facts={**FACTS, "maxNodes": 1.0}), Word.BROKEN, "it has room for at most 1 of the 2 pods"),
        (away(exported={"stack": "s"}), Word.BROKEN, "no training namespace of this name"),
        (away(pool="a100-spot"), Word.BROKEN, "not on the ladder of this namespace"),
        (away(exported={**EXPORTED, "checkpoints": "s3://theirs/vision"}), Word.BROKEN, "without its own"),
        (away(exported={**EXPORTED, "checkpoints": None}), Word.NOT_JUDGED, "nor an output"),
        (away(exported={**EXPORTED, "reachesCheckpoints": False}), Word.BROKEN, "leads to no store"),
        (away(exported={**EXPORTED, "registry": ECR}), Word.ASSUMED, "are assumed to have the images"),
    ],
)  # fmt: skip
def test_tier_elsewhere_is_judged_by_what_its_stack_exports(
    tier: Mapping[str, Value], word: Word, reason: str
) -> None:
    title = f"tier 2 → pool us-east-2/{tier['pool']}"
    found = verdict(stack(A100_SPOT, tier, A100), title)
    assert found[0] is word
    assert reason in found[1]


@pytest.mark.parametrize(
    ("uri", "word"), [(UNKNOWN, Word.NOT_JUDGED), (None, Word.NOT_JUDGED), (f"{URI}/", Word.PROVED)]
)
def test_checkpoints_are_compared_with_those_of_this_program(uri: Value, word: Word) -> None:
    assert verdict(stack(A100_SPOT, AWAY, A100, uri=uri))[0] is word


def test_directory_that_both_clusters_name_is_assumed_to_be_one() -> None:
    tier = away(exported={**EXPORTED, "checkpoints": "file:///checkpoints"})
    found = verdict(stack(A100_SPOT, tier, A100, uri="file:///checkpoints"))
    assert found[0] is Word.ASSUMED


def test_lost_checkpoints_stop_a_run_and_what_is_unknown_of_them_does_not() -> None:
    lost = stack(A100_SPOT, away(exported={**EXPORTED, "checkpoints": "s3://theirs/vision"}), A100)
    (found,) = find_unreachable(lost, PACK_DEFAULTS)
    assert "Let both stacks keep the checkpoints" in found.message
    unknown = stack(A100_SPOT, AWAY, A100, uri=UNKNOWN)
    assert not find_unreachable(unknown, PACK_DEFAULTS)
    assert [each for each in find_notes(unknown, PACK_DEFAULTS) if TITLE in each.message]


@pytest.mark.parametrize(
    ("image", "stops"), [("ghcr.io/lab/train:1", True), (f"123456789012{ECR}/train:1", False)]
)
def test_job_whose_image_no_registry_there_has_stops_the_run(image: str, stops: bool) -> None:
    job = declared_jobset({"containers": [{**requesting(cpu="3", memory="8Gi"), "image": image}]})
    first, last = TIERS
    tiers = [first, away(exported={**EXPORTED, "registry": ECR}), last]
    resources = [
        ladder(tiers) if each.type.endswith(":FallbackPolicy") else each for each in job_program(job)
    ]
    found = [
        each.message
        for each in find_unreachable(resources, PACK_DEFAULTS)
        if "cannot pull ghcr.io" in each.message
    ]
    assert bool(found) is stops


def with_job(pod: Mapping[str, Value], *tiers: Value) -> list[StackResource]:
    """A program with a job of these pods, and a ladder of these tiers."""
    job = declared_jobset(cast("Json", pod))
    made = ladder(list(tiers))
    return [made if each.type.endswith(":FallbackPolicy") else each for each in job_program(job)]


#: As the credential provider of EKS's nodes knows them.
ECR_HOSTS: Final = (
    "dkr.ecr.cn-north-1.amazonaws.com.cn",
    "dkr.ecr-fips.us-east-2.amazonaws.com",
    "dkr-ecr.us-east-2.on.aws",
    "dkr-ecr-fips.us-east-2.on.aws",
    "dkr-ecr.cn-north-1.on.amazonwebservices.com.cn",
    "dkr.ecr.eusc-de-east-1.amazonaws.eu",
    "dkr.ecr.us-iso-east-1.c2s.ic.gov",
)


def pod_with(image: str, *volumes: Value) -> Mapping[str, Value]:
    return {"containers": [{**requesting(cpu="3", memory="8Gi"), "image": image}], "volumes": list(volumes)}


@pytest.mark.parametrize(
    ("pod", "reason"),
    [
        (pod_with("train:1"), None),
        (pod_with("ghcr.io/lab/train:1"), None),
        (
            pod_with(f"123456789012{ECR}/train:1"),
            f"may pull 123456789012{ECR}/train:1, from a registry of one account",
        ),
        *(
            (pod_with(f"123456789012.{host}/train:1"), f"may pull 123456789012.{host}/train:1")
            for host in ECR_HOSTS
        ),
        (pod_with("europe-docker.pkg.dev/lab/images/train:1"), "may pull europe-docker.pkg.dev/lab/images/train:1"),
        (pod_with("lab.azurecr.io/train:1"), "may pull lab.azurecr.io/train:1"),
        (pod_with("train:1", {"name": "x", "emptyDir": {}}), None),
        (pod_with("train:1", {"name": "x", "configMap": {"name": "checkpoints"}}), None),
        (pod_with("train:1", {"name": "x", "configMap": {"name": UNKNOWN}}), None),
        (
            pod_with(
                "train:1",
                {"name": "d", "persistentVolumeClaim": {"claimName": "imagenet"}},
                {"name": "k", "secret": {"secretName": "token"}},
                {"name": "n", "nfs": {"server": "10.0.0.1", "path": "/"}},
            ),
            "has PersistentVolumeClaim 'imagenet', Secret 'token', volume 'n', with the data",
        ),
    ],
)  # fmt: skip
def test_images_and_volumes_of_a_job_that_may_move_are_not_judged(
    pod: Mapping[str, Value], reason: str | None
) -> None:
    first, last = TIERS
    resources = with_job(pod, first, AWAY, last)
    (found,) = verdicts(resources, PACK_DEFAULTS)
    said = [part for part in found.parts if part.about.endswith(" elsewhere")]
    notes = [each.message for each in find_notes(resources, PACK_DEFAULTS) if "is not known" in each.message]
    assert bool(said) is (reason is not None), f"{found}"
    if reason is not None:
        assert said[0].word is Word.NOT_JUDGED
        assert reason in said[0].reason
        assert TITLE in said[0].reason
        assert [each for each in notes if reason in each]
    assert not find_unreachable(resources, PACK_DEFAULTS)


def test_image_and_volumes_of_a_head_that_may_move_are_not_judged() -> None:
    worker = pod_template({POOL: "cpu-spot"}, spec={"containers": [requesting(cpu="1")]})
    head = pod_template(spec=cast("Json", pod_with("lab.azurecr.io/head:1", {"name": "k", "secret": {"secretName": "token"}})))  # fmt: skip
    cluster: Json = {"headGroupSpec": {"template": head}, "workerGroupSpecs": [worker_group(worker)]}
    job = declared(RAY_JOB, rayjob(spec={"rayClusterSpec": cluster, "backoffLimit": 5}))
    first, last = TIERS
    made = ladder([first, AWAY, last])
    resources = [made if each.type.endswith(":FallbackPolicy") else each for each in job_program(job)]
    (found,) = verdicts(resources, PACK_DEFAULTS)
    (said,) = (part for part in found.parts if part.about.endswith(" elsewhere"))
    assert "may pull lab.azurecr.io/head:1" in said.reason
    assert "has Secret 'token'" in said.reason


def test_volumes_of_a_job_that_stays_in_its_cluster_need_no_word() -> None:
    pod = pod_with("lab.azurecr.io/train:1", {"name": "k", "secret": {"secretName": "token"}})
    (found,) = verdicts(with_job(pod, *TIERS), PACK_DEFAULTS)
    assert not [part for part in found.parts if part.about.endswith(" elsewhere")]


def test_ladder_is_never_proved_by_a_tier_elsewhere() -> None:
    known = program("aws-dev")
    (made,) = (each for each in known if each.type.endswith(":FallbackPolicy"))
    spec = made.props["spec"]
    assert isinstance(spec, dict)
    huge = {**MACHINE, "cpu": "9000", "memory": "9000Gi"}
    tiers = items_at(spec, "tiers")
    assert tiers is not UNKNOWN
    spec["tiers"] = [tiers[0], away(facts={**FACTS, "machines": [huge]}, exported=None), *tiers[1:]]
    spec["shapes"] = [{"name": "huge", "cpu": "8900", "memory": "1Gi"}]
    (found,) = find_unreachable(known, PACK_DEFAULTS)
    assert "tier 3" in found.message
    assert verdict(known)[0] is Word.ASSUMED


@pytest.mark.parametrize("tier", [AWAY, away(facts=None, exported=None)])
def test_ladder_does_not_end_elsewhere(tier: Mapping[str, Value]) -> None:
    (found,) = find_ladder_ends(stack(A100_SPOT, tier))
    assert found.proven
    assert "names cluster 'us-east-2'" in found.message


def test_tier_elsewhere_needs_a_timeout_although_it_is_on_demand() -> None:
    (found,) = find_endless_waits(stack(A100_SPOT, away(procurementTimeout=None), A100))
    assert "while that cluster does not answer" in found.message


def test_pool_of_the_same_name_neither_proves_nor_breaks_a_tier_elsewhere() -> None:
    here = stack(A100_SPOT, away(pool="a100-spot", exported={**EXPORTED, "ladder": ["a100-spot"]}), A100)
    without = [each for each in here if each.logical_name != "a100-spot"]
    title = "tier 2 → pool us-east-2/a100-spot"
    assert verdict(here, title) == verdict(without, title)
    assert verdict(here, title)[0] is Word.PROVED
