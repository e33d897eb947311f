"""S3: what AWS adds and refuses."""

from collections.abc import Mapping

from rehearsal.providers.cloud.aws.names import place
from rehearsal.providers.cloud.catalogue import Rules

RESOURCES: Mapping[str, Rules] = {
    "aws:s3/bucket:Bucket": Rules(
        longest_name=63,
        taken="BucketAlreadyExists: The requested bucket name is not available: {name}",
        computed={
            "bucketDomainName": lambda making: f"{making.name}.s3.amazonaws.com",
            "bucketRegionalDomainName": lambda making: f"{making.name}.s3.{place(making)}.amazonaws.com",
            "bucketRegion": place,
        },
    ),
}
