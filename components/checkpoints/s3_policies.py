"""Who may do what with a bucket of checkpoints, as IAM documents. Pure."""

from __future__ import annotations

from holdfast.components.iam.document import Statement, document


def bucket_policy(bucket_arn: str) -> str:
    """The bucket's own policy: nobody, whoever they are, reads or writes in plain text over a network."""
    return document(
        Statement(
            sid="TlsOnly",
            effect="Deny",
            principals="*",
            actions=["s3:*"],
            resources=[bucket_arn, f"{bucket_arn}/*"],
            conditions={"Bool": {"aws:SecureTransport": "false"}},
        )
    )


def prefix_access(*, bucket_arn: str, prefix: str, key_arn: str | None) -> str:
    """What a namespace's pods may do: read, write and list under `prefix/`, and use the bucket's key for that.

    They may delete a checkpoint, which leaves its version behind, and not a version.
    """
    objects = f"{bucket_arn}/{prefix}/*"
    # A bucket's name is free once the bucket is gone: whoever takes it in another account is sent no checkpoints.
    ours = {"aws:ResourceAccount": "${aws:PrincipalAccount}"}
    statements = [
        Statement(
            sid="Checkpoints",
            actions=[
                "s3:GetObject",
                "s3:PutObject",
                "s3:DeleteObject",
                "s3:AbortMultipartUpload",
                "s3:ListMultipartUploadParts",
            ],
            resources=[objects],
            conditions={"StringEquals": ours},
        ),
        Statement(
            sid="OwnPrefix",
            actions=["s3:ListBucket"],
            resources=[bucket_arn],
            # With the slash: `vision*` would also list what lies under `vision-2/`.
            conditions={"StringEquals": ours, "StringLike": {"s3:prefix": [f"{prefix}/*"]}},
        ),
    ]
    if key_arn is not None:
        statements.append(
            Statement(
                sid="Key",
                actions=["kms:Decrypt", "kms:GenerateDataKey"],
                resources=[key_arn],
                # S3 names the bucket under a bucket key, and the object for a writer who turns bucket keys off.
                conditions={"StringLike": {"kms:EncryptionContext:aws:s3:arn": [bucket_arn, objects]}},
            )
        )
    return document(*statements)
