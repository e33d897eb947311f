"""A bucket, and a namespace whose pods get its name."""

import pulumi
from pulumi_aws import s3
from pulumi_kubernetes.core.v1 import ConfigMap, Namespace


class FeatureStore(pulumi.ComponentResource):
    """An encrypted bucket with versions, and a namespace with its name in a ConfigMap."""

    bucket: pulumi.Output[str]

    def __init__(self, name: str, *, team: str, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__("features:index:FeatureStore", name, None, opts)
        own = pulumi.ResourceOptions(parent=self)
        bucket = s3.Bucket(f"{name}-features", tags={"team": team}, opts=own)
        s3.BucketVersioning(
            f"{name}-versions", bucket=bucket.id, versioning_configuration={"status": "Enabled"}, opts=own
        )
        namespace = Namespace(f"{name}-{team}", metadata={"name": team}, opts=own)
        ConfigMap(
            f"{name}-place",
            metadata={"name": "features", "namespace": namespace.metadata["name"]},
            data={"bucket": bucket.id},
            opts=own,
        )
        self.bucket = bucket.id
        self.register_outputs({"bucket": bucket.id})
