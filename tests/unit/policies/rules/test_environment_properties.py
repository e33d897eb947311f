"""Properties of the rules on checkpoints and quotas: each agrees with a model."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import reported
from tests.support.builders.stack_resources import namespace, resource

SAFE = "checkpoint-storage-protected"
QUOTAS = "training-namespaces-have-quotas"


@given(*[st.booleans()] * 8)
def test_checkpoint_bucket_is_private_versioned_and_protected(
    private: bool, uniform: bool, versioned: bool, softly: bool, expiring: bool, protected: bool, prod: bool, named: bool
) -> None:  # fmt: skip
    condition: Value = {"age": 30} if expiring else {"daysSinceNoncurrentTime": 30}
    props: dict[str, Value] = {
        "publicAccessPrevention": "enforced" if private else "inherited",
        "uniformBucketLevelAccess": uniform,
        "versioning": {"enabled": versioned},
        "softDeletePolicy": {"retentionDurationSeconds": 604800 if softly else 0},
        "lifecycleRules": [{"action": {"type": "Delete"}, "condition": condition}],
    }
    bucket = resource("gcp:storage/bucket:Bucket", "checkpoints" if named else "logs", props)
    urn = bucket.urn.replace("urn:pulumi:local", f"urn:pulumi:{'team-prod' if prod else 'team-dev'}")
    wrong = not (private and uniform and (versioned or softly) and not expiring) or (prod and not protected)
    found = reported([replace(bucket, urn=urn, is_protected=protected)])
    assert (SAFE in found) is (named and wrong)


@given(
    quotas=st.sets(st.sampled_from(("vision", "tabular"))),
    training=st.sets(st.sampled_from(("vision", "tabular"))),
)
def test_every_training_namespace_has_a_quota(quotas: set[str], training: set[str]) -> None:
    made: list[StackResource] = [
        resource(
            "kubernetes:core/v1:ResourceQuota",
            name,
            {"metadata": {"name": "q", "namespace": name}, "spec": {"hard": {"pods": "50"}}},
        )
        for name in sorted(quotas)
    ]
    found = reported([*(namespace(name) for name in sorted(training)), *made])
    assert len(found.get(QUOTAS, [])) == len(training - quotas)
