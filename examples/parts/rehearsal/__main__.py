"""A program of another team. `holdfast rehearse examples/parts/rehearsal` runs its whole lifecycle with no account."""

import pulumi
from components.feature_store import FeatureStore

team = pulumi.Config().get("team") or "vision"
pulumi.export("bucket", FeatureStore("store", team=team).bucket)
