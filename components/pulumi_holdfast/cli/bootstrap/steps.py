"""The prerequisites of `pulumi login` on each cloud: a private, versioned store for states, and a key for secrets.

Each step consists of commands of the cloud's own command line, which the guides require anyway. Existing resources are not
created again, so the command can be repeated.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Final, TypeAlias

Words: TypeAlias = tuple[str, ...]

#: In a command: what the one before it printed.
OUTPUT: Final = "{output}"


@dataclass(frozen=True, kw_only=True)
class Step:
    """One resource: `find` succeeds if it exists; otherwise the commands `make` create it.

    Without `find`, the commands are idempotent settings.
    """

    what: str
    make: tuple[Words, ...]
    find: Words | None = None


@dataclass(frozen=True, kw_only=True)
class BootstrapPlan:
    """The steps of a cloud in order, and the commands that use their resources."""

    steps: tuple[Step, ...]
    login: str
    secrets_provider: str


#: Prints the account of the credentials.
AWS_ACCOUNT: Final[Words] = (
    *("aws", "sts", "get-caller-identity"),
    *("--query", "Account", "--output", "text"),
)
#: Prints the id of the person that is logged in.
AZURE_USER: Final[Words] = ("az", "ad", "signed-in-user", "show", "--query", "id", "--output", "tsv")

_FIRST_REGION: Final = "us-east-1"


def aws_plan(name: str, region: str, account: str) -> BootstrapPlan:
    """A bucket that belongs to the account, and a key with the alias of the same name."""
    at, of = ("--region", region), ("--bucket", name, "--expected-bucket-owner", account)
    placed = (
        () if region == _FIRST_REGION else ("--create-bucket-configuration", f"LocationConstraint={region}")
    )
    blocked = "BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true"
    create_bucket = ("aws", "s3api", "create-bucket", "--bucket", name, *placed, *at)
    secure = ("aws", "s3api", "put-bucket-policy", *of, "--policy", _only_tls(name, region), *at)
    create_key = (
        *("aws", "kms", "create-key", "--description", f"secrets of Pulumi stacks in {name}"),
        *("--query", "KeyMetadata.KeyId", "--output", "text", *at),
    )
    alias = f"alias/{name}"
    return BootstrapPlan(
        steps=(
            Step(
                what=f"bucket {name}", find=("aws", "s3api", "head-bucket", *of, *at), make=(create_bucket,)
            ),
            Step(
                what=f"TLS for bucket {name}",
                find=("aws", "s3api", "get-bucket-policy", *of, *at),
                make=(secure,),
            ),
            Step(
                what=f"no public access to bucket {name}",
                make=(
                    (
                        *("aws", "s3api", "put-public-access-block", *of),
                        *("--public-access-block-configuration", blocked, *at),
                    ),
                ),
            ),
            Step(
                what=f"versions of objects in bucket {name}",
                make=(
                    (
                        *("aws", "s3api", "put-bucket-versioning", *of),
                        *("--versioning-configuration", "Status=Enabled", *at),
                    ),
                ),
            ),
            Step(
                what=f"key {alias}",
                find=("aws", "kms", "describe-key", "--key-id", alias, *at),
                make=(
                    create_key,
                    ("aws", "kms", "create-alias", "--alias-name", alias, "--target-key-id", OUTPUT, *at),
                ),
            ),
        ),
        login=f"s3://{name}?region={region}",
        secrets_provider=f"awskms://{alias}?region={region}",
    )


def gcp_plan(name: str, region: str, project: str) -> BootstrapPlan:
    """A bucket, and a key in a key ring, which Google Cloud never deletes."""
    of = ("--project", project)
    at = ("--location", region, *of)
    ring = ("--keyring", name, *at)
    return BootstrapPlan(
        steps=(
            Step(
                what="the API of keys",
                make=(("gcloud", "services", "enable", "cloudkms.googleapis.com", *of),),
            ),
            Step(
                what=f"bucket {name}",
                find=("gcloud", "storage", "buckets", "describe", f"gs://{name}", *of),
                make=(
                    (
                        *("gcloud", "storage", "buckets", "create", f"gs://{name}", *at),
                        *("--uniform-bucket-level-access", "--public-access-prevention"),
                    ),
                ),
            ),
            Step(
                what=f"versions of objects in bucket {name}",
                make=(("gcloud", "storage", "buckets", "update", f"gs://{name}", "--versioning", *of),),
            ),
            Step(
                what=f"key ring {name}",
                find=("gcloud", "kms", "keyrings", "describe", name, *at),
                make=(("gcloud", "kms", "keyrings", "create", name, *at),),
            ),
            Step(
                what="key pulumi",
                find=("gcloud", "kms", "keys", "describe", "pulumi", *ring),
                make=(("gcloud", "kms", "keys", "create", "pulumi", *ring, "--purpose", "encryption"),),
            ),
        ),
        login=f"gs://{name}",
        secrets_provider=f"gcpkms://projects/{project}/locations/{region}/keyRings/{name}/cryptoKeys/pulumi",
    )


def azure_plan(name: str, region: str, user: str) -> BootstrapPlan:
    """A resource group with a storage account without keys and a vault, and the user's rights to both.

    A storage account's name has no hyphens.
    """
    account = name.replace("-", "")
    inside = ("--resource-group", name)
    at = (*inside, "--location", region)
    find_account = ("az", "storage", "account", "show", "--name", account, *inside)
    find_vault = ("az", "keyvault", "show", "--name", name, *inside)
    key = ("--vault-name", name, "--name", "pulumi")
    return BootstrapPlan(
        steps=(
            Step(
                what=f"resource group {name}",
                find=("az", "group", "show", "--name", name),
                make=(("az", "group", "create", "--name", name, "--location", region),),
            ),
            Step(
                what=f"storage account {account}",
                find=find_account,
                make=(
                    (
                        *("az", "storage", "account", "create", "--name", account, *at),
                        *("--sku", "Standard_LRS", "--kind", "StorageV2", "--min-tls-version", "TLS1_2"),
                        *("--allow-blob-public-access", "false", "--allow-shared-key-access", "false"),
                    ),
                ),
            ),
            Step(
                what=f"versions of blobs in storage account {account}",
                make=(
                    (
                        *("az", "storage", "account", "blob-service-properties", "update"),
                        *("--account-name", account, *inside, "--enable-versioning", "true"),
                    ),
                ),
            ),
            _role("Storage Blob Data Contributor", find_account, user),
            Step(
                what="container state",
                make=(
                    (
                        *("az", "storage", "container", "create", "--name", "state"),
                        *("--account-name", account, "--auth-mode", "login"),
                    ),
                ),
            ),
            Step(
                what=f"vault {name}",
                find=find_vault,
                make=(
                    (
                        *("az", "keyvault", "create", "--name", name, *at),
                        *("--enable-rbac-authorization", "true", "--enable-purge-protection", "true"),
                    ),
                ),
            ),
            _role("Key Vault Crypto Officer", find_vault, user),
            Step(
                what="key pulumi",
                find=("az", "keyvault", "key", "show", *key),
                make=(("az", "keyvault", "key", "create", *key, "--kty", "RSA", "--size", "3072"),),
            ),
        ),
        login=f"azblob://state?storage_account={account}",
        secrets_provider=f"azurekeyvault://{name}.vault.azure.net/keys/pulumi",
    )


def _role(role: str, resource: Words, user: str) -> Step:
    """The user's role for one resource; Azure returns an existing assignment unchanged."""
    return Step(
        what=f"role {role}",
        make=(
            (*resource, "--query", "id", "--output", "tsv"),
            (
                *("az", "role", "assignment", "create", "--role", role, "--scope", OUTPUT),
                *("--assignee-object-id", user, "--assignee-principal-type", "User"),
            ),
        ),
    )


def _only_tls(bucket: str, region: str) -> str:
    partition = (
        "aws-cn" if region.startswith("cn-") else "aws-us-gov" if region.startswith("us-gov-") else "aws"
    )
    arn = f"arn:{partition}:s3:::{bucket}"
    statement = {
        "Sid": "OnlyTls",
        "Effect": "Deny",
        "Principal": "*",
        "Action": "s3:*",
        "Resource": [arn, f"{arn}/*"],
        "Condition": {"Bool": {"aws:SecureTransport": "false"}},
    }
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})
