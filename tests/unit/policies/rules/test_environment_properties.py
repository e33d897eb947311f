"""Properties of the rules on checkpoints, identities, API servers, versions and quotas: each agrees with a model."""

import json
import string
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.program.resources import StackResource, Value
from tests.support.builders.policy_programs import reported
from tests.support.builders.stack_resources import namespace, resource

SAFE, IDENTITIES = "checkpoint-storage-protected", "job-identities-scoped-to-prefix"
ENDPOINTS, PINNED = "api-server-not-public", "charts-and-images-pinned"
QUOTAS = "training-namespaces-have-quotas"
NAMES = st.text(string.ascii_lowercase, min_size=1, max_size=8)
CIDRS = st.lists(st.sampled_from(("203.0.113.0/24", "10.0.0.0/8", "0.0.0.0/0", "::/0")), max_size=3)
ANYWHERE = {"0.0.0.0/0", "::/0"}


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
    bucket=NAMES,
    prefix=st.lists(NAMES, max_size=2),
    action=st.sampled_from(("s3:GetObject", "s3:PutObject", "s3:*", "s3:ListBucket")),
    effect=st.sampled_from(("Allow", "Deny")),
)
def test_grant_has_a_prefix_before_its_wildcard(
    bucket: str, prefix: list[str], action: str, effect: str
) -> None:
    target = f"arn:aws:s3:::{'/'.join((bucket, *prefix, '*'))}"
    document = {"Statement": [{"Effect": effect, "Action": [action], "Resource": target}]}
    policy = resource("aws:iam/rolePolicy:RolePolicy", "jobs", {"policy": json.dumps(document)})
    wide = not prefix and effect == "Allow" and action != "s3:ListBucket"
    assert (IDENTITIES in reported([policy])) is wide, f"{effect} {action} on {target}"


@given(cidrs=CIDRS, public=st.booleans(), on_aws=st.booleans())
def test_endpoint_is_private_or_restricted_to_ranges(cidrs: list[str], public: bool, on_aws: bool) -> None:
    eks: Value = {"endpointPublicAccess": public, "publicAccessCidrs": cidrs}
    aks: Value = {"enablePrivateCluster": not public, "authorizedIPRanges": cidrs}
    cluster = resource("azure-native:containerservice:ManagedCluster", "c", {"apiServerAccessProfile": aks})
    if on_aws:
        cluster = resource("aws:eks/cluster:Cluster", "cluster", {"vpcConfig": eks})
    is_open = public and (not cidrs or bool({*cidrs} & ANYWHERE))
    assert (ENDPOINTS in reported([cluster])) is is_open, f"{cidrs}"


@given(
    host=st.sampled_from(("", "registry.example.com/", "registry.example.com:5000/")),
    name=NAMES,
    tag=st.sampled_from(("", "latest", "1.2.3", "2026-11")),
    digest=st.booleans(),
)
def test_image_is_pinned_by_a_tag_or_a_digest(host: str, name: str, tag: str, digest: bool) -> None:
    image = f"{host}{name}{':' if tag else ''}{tag}{'@sha256:' + 'a' * 64 if digest else ''}"
    pod = resource("kubernetes:core/v1:Pod", "p", {"spec": {"containers": [{"image": image}]}})
    assert (PINNED in reported([pod])) is (not digest and tag in {"", "latest"}), image


@given(
    version=st.sampled_from((None, "1.14.1", "v2.0.0-rc.1", "^1.2", "1.x", ">=1", "latest")),
    local=st.booleans(),
)
def test_chart_is_pinned_by_its_exact_version(version: str | None, local: bool) -> None:
    chart = "./charts/karpenter" if local else "oci://registry.example.com/karpenter"
    release = resource("kubernetes:helm.sh/v3:Release", "r", {"chart": chart, "version": version})
    exact = version in {"1.14.1", "v2.0.0-rc.1"}
    assert (PINNED in reported([release])) is (not local and not exact), f"{chart} {version}"


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
