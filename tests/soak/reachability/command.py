"""`python -m tests.soak reachability`: compares verdicts with the real scheduler and Karpenter on many drawn NodePools."""

import json
import os
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pulumi_holdfast.kubernetes.admission.rules import TolerationRule
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import TRAINING as TRAINING_LABEL
from pulumi_holdfast.ladder.labels import TRAINING_VALUE
from pulumi_holdfast.ladder.taints import SPOT
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from pulumi_holdfast.rehearsal.output import say
from tests.soak.seeds import SEED_VARIABLE, seed_of
from tests.support.builders.tried_jobs import ELSEWHERE, TRAINING, TriedJob, rules_of, takes
from tests.support.clusters.admission import (
    admission_objects,
    make_namespace,
    tolerations_of,
    wait_until_enforced,
)
from tests.support.clusters.fallback import install_karpenter, system_node
from tests.support.clusters.operators import operator_cluster
from tests.support.clusters.reachability import BATCHES, Trial, sell_whole_machines, try_out
from tests.support.strategies.reachability_pools import open_jobs


def reachability(*, seed: int | None, rounds: int, jobs: int) -> None:
    """Try rounds of drawn jobs, each on a cluster of its own.

    Raises RehearsalError if a verdict differs from what came of a tier.
    """
    first = seed_of(seed, os.environ.get(SEED_VARIABLE))
    counted: Counter[str] = Counter()
    wrong = 0
    for number in range(first, first + rounds):
        drawn = open_jobs(number, jobs)
        rules = rules_of(drawn)
        for trial in _tried(drawn, rules):
            told = takes(trial.job.results(trial.tier, rules))
            counted[_verdict(told)] += 1
            if told not in {None, trial.is_whole}:
                wrong += 1
                say(f"disagreement: {_described(trial, rules)}")
        say(f"seed {number}: {counted.total()} tiers so far, {dict(counted)}, {wrong} disagreements")
    if wrong:
        raise RehearsalError(
            f"{wrong} verdicts are wrong: find the reason, and add a test of the proof for each"
        )


def _tried(jobs: Sequence[TriedJob], rules: Sequence[TolerationRule]) -> Sequence[Trial]:
    with tempfile.TemporaryDirectory() as folder, operator_cluster(Path(folder)) as cluster:
        sell_whole_machines(cluster.client)
        cluster.apply(system_node("operators"))
        install_karpenter(cluster, BATCHES)
        make_namespace(cluster.client, TRAINING, {TRAINING_LABEL: TRAINING_VALUE})
        make_namespace(cluster.client, ELSEWHERE, {})
        cluster.apply(*admission_objects(rules))
        if rules:
            wait_until_enforced(cluster.client, _tolerates_all)
        return try_out(cluster.client, jobs)


def _tolerates_all(client: KubeClient) -> bool:
    pod: Json = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "asks", "namespace": TRAINING},
        "spec": {"nodeSelector": {SPOT.key: SPOT.value}, "containers": [{"name": "train", "image": "train"}]},
    }
    admitted = client.apply(pod, field_manager="tests", dry_run=True)
    return SPOT.as_toleration() in tolerations_of(admitted)


def _verdict(told: bool | None) -> str:
    return {True: "proved", False: "broken", None: "not judged"}[told]


def _described(trial: Trial, rules: Sequence[TolerationRule]) -> str:
    pools = "\n".join(json.dumps(each) for each in trial.tier.node_pools)
    return (
        f"{trial.tier.name}: {trial.job.results(trial.tier, rules)}, and {trial.bound} of {trial.job.shape.pods} pods came\n"
        f"{trial.job.shape}\nadmitted: {trial.job.is_admitted}\n{pools}\nKarpenter: {trial.said}"
    )
