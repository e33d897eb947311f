"""`holdfast bootstrap CLOUD`: creates the state store and the key of a cloud's stacks, and prints how to use them.

A store is private and versioned, a key encrypts the secrets of stacks. Each step runs commands of the cloud's own command line,
which the guides require anyway. Existing resources are not created again, so the command can be repeated.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from pulumi_holdfast.config.preflight import run_command
from pulumi_holdfast.ladder.errors import ConfigError, Problem

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from pulumi_holdfast.config.preflight import CommandResult, Runner, Words

_NAME: Final = re.compile(r"[a-z][a-z0-9-]{1,22}[a-z0-9]", re.ASCII)
_ABSENT: Final = re.compile(r"not ?found|404|does not exist", re.IGNORECASE)
#: In a command: what the one before it printed.
OUTPUT: Final = "{output}"

# A line without a mark names a step. `?` finds what `!` makes: a step without `?` sets what may be set again.
_AWS: Final = """
bucket {name}
? aws s3api head-bucket --bucket {name} --expected-bucket-owner {owner} --region {region}
! aws s3api create-bucket --bucket {name} --region {region} {placed}
TLS for bucket {name}
? aws s3api get-bucket-policy --bucket {name} --expected-bucket-owner {owner} --region {region}
! aws s3api put-bucket-policy --bucket {name} --expected-bucket-owner {owner} --region {region} --policy \
    '{{"Version": "2012-10-17", "Statement": [{{"Sid": "OnlyTls", "Effect": "Deny", "Principal": "*", "Action": "s3:*", \
    "Resource": ["arn:{partition}:s3:::{name}", "arn:{partition}:s3:::{name}/*"], \
    "Condition": {{"Bool": {{"aws:SecureTransport": "false"}}}}}}]}}'
no public access to bucket {name}
! aws s3api put-public-access-block --bucket {name} --expected-bucket-owner {owner} --region {region} \
    --public-access-block-configuration \
    BlockPublicAcls=true,IgnorePublicAcls=true,BlockPublicPolicy=true,RestrictPublicBuckets=true
versions of objects in bucket {name}
! aws s3api put-bucket-versioning --bucket {name} --expected-bucket-owner {owner} --region {region} \
    --versioning-configuration Status=Enabled
key alias/{name}
? aws kms describe-key --key-id alias/{name} --region {region}
! aws kms create-key --description 'secrets of Pulumi stacks in {name}' --query KeyMetadata.KeyId --output text --region {region}
! aws kms create-alias --alias-name alias/{name} --target-key-id {output} --region {region}
"""
# Google Cloud never deletes a key ring.
_GCP: Final = """
the API of keys
! gcloud services enable cloudkms.googleapis.com --project {owner}
bucket {name}
? gcloud storage buckets describe gs://{name} --project {owner}
! gcloud storage buckets create gs://{name} --location {region} --project {owner} \
    --uniform-bucket-level-access --public-access-prevention
versions of objects in bucket {name}
! gcloud storage buckets update gs://{name} --versioning --project {owner}
key ring {name}
? gcloud kms keyrings describe {name} --location {region} --project {owner}
! gcloud kms keyrings create {name} --location {region} --project {owner}
key pulumi
? gcloud kms keys describe pulumi --keyring {name} --location {region} --project {owner}
! gcloud kms keys create pulumi --keyring {name} --location {region} --project {owner} --purpose encryption
"""
# Who creates an account or a vault may not write into it: each role precedes what needs it. Azure returns an existing role
# assignment unchanged.
_AZURE: Final = """
resource group {name}
? az group show --name {name}
! az group create --name {name} --location {region}
storage account {store}
? az storage account show --name {store} --resource-group {name}
! az storage account create --name {store} --resource-group {name} --location {region} --sku Standard_LRS --kind StorageV2 \
    --min-tls-version TLS1_2 --allow-blob-public-access false --allow-shared-key-access false
versions of blobs in storage account {store}
! az storage account blob-service-properties update --account-name {store} --resource-group {name} --enable-versioning true
role Storage Blob Data Contributor
! az storage account show --name {store} --resource-group {name} --query id --output tsv
! az role assignment create --role 'Storage Blob Data Contributor' --scope {output} \
    --assignee-object-id {owner} --assignee-principal-type User
container state
! az storage container create --name state --account-name {store} --auth-mode login
vault {name}
? az keyvault show --name {name} --resource-group {name}
! az keyvault create --name {name} --resource-group {name} --location {region} \
    --enable-rbac-authorization true --enable-purge-protection true
role Key Vault Crypto Officer
! az keyvault show --name {name} --resource-group {name} --query id --output tsv
! az role assignment create --role 'Key Vault Crypto Officer' --scope {output} \
    --assignee-object-id {owner} --assignee-principal-type User
key pulumi
? az keyvault key show --vault-name {name} --name pulumi
! az keyvault key create --vault-name {name} --name pulumi --kty RSA --size 3072
"""
_OWNER: Final[Mapping[str, Words]] = {
    "aws": ("aws", "sts", "get-caller-identity", "--query", "Account", "--output", "text"),
    "azure": ("az", "ad", "signed-in-user", "show", "--query", "id", "--output", "tsv"),
}
#: In the commands of a dry run, which asks the cloud nothing.
_UNKNOWN_OWNER: Final = {"aws": "ACCOUNT", "azure": "USER_OBJECT_ID"}
#: The steps of each cloud, and what `pulumi login` and `pulumi stack init --secrets-provider` take.
_PLANS: Final[Mapping[str, tuple[str, str, str]]] = {
    "aws": (_AWS, "s3://{name}?region={region}", "awskms://alias/{name}?region={region}"),
    "gcp": (
        _GCP,
        "gs://{name}",
        "gcpkms://projects/{owner}/locations/{region}/keyRings/{name}/cryptoKeys/pulumi",
    ),
    "azure": (
        _AZURE,
        "azblob://state?storage_account={store}",
        "azurekeyvault://{name}.vault.azure.net/keys/pulumi",
    ),
}


@dataclass(frozen=True, kw_only=True)
class Step:
    """One resource: `find` succeeds if it exists, otherwise `make` creates it; or, without `find`, idempotent settings."""

    what: str
    make: tuple[Words, ...]
    find: Words | None = None


@dataclass(frozen=True, kw_only=True)
class BootstrapPlan:
    """The steps of a cloud in order, and the commands that use their resources."""

    steps: tuple[Step, ...]
    login: str
    secrets_provider: str


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.add_argument("cloud", choices=("aws", "azure", "gcp"))
    parser.add_argument("--name", required=True, help="of the store: no other account of the cloud uses it")
    parser.add_argument("--region", required=True, help="the region or location of the store and the key")
    parser.add_argument("--project", help="the project, on Google Cloud only")
    parser.add_argument("--dry-run", action="store_true", help="print the commands that make, and run none")


def run(parsed: argparse.Namespace) -> int:
    """Create the missing resources; return the exit code. Raises ConfigError."""
    _check(parsed.cloud, parsed.name, parsed.project)
    if parsed.dry_run:
        owner = parsed.project or _UNKNOWN_OWNER[parsed.cloud]
        show(cloud_plan(parsed.cloud, parsed.name, parsed.region, owner), report=print)
        return 0
    plan = plan_of(parsed.cloud, parsed.name, parsed.region, parsed.project, run_command)
    bootstrap(plan, run_command, report=print)
    return 0


def plan_of(cloud: str, name: str, region: str, project: str | None, runner: Runner) -> BootstrapPlan:
    """The plan of a cloud, with the account or the person of the credentials."""
    owner = _required(_OWNER[cloud], runner) if cloud in _OWNER else project or ""
    return cloud_plan(cloud, name, region, owner)


def cloud_plan(cloud: str, name: str, region: str, owner: str) -> BootstrapPlan:
    """The plan of a cloud; `owner` is the account on AWS, the project on Google Cloud, the person on Azure."""
    steps, login, secrets_provider = _PLANS[cloud]
    partition = {"cn": "aws-cn", "us-gov": "aws-us-gov"}.get(
        region.rpartition("-")[0].rpartition("-")[0], "aws"
    )
    values = {
        "name": name,
        "region": region,
        "owner": owner,
        # A storage account's name has no hyphens.
        "store": name.replace("-", ""),
        "partition": partition,
        "output": OUTPUT,
    }
    # S3 rejects the name of its first region.
    placed = "" if region == "us-east-1" else "--create-bucket-configuration LocationConstraint={region}"
    return BootstrapPlan(
        steps=tuple(_steps(steps.replace("{placed}", placed), values)),
        login=login.format(**values),
        secrets_provider=secrets_provider.format(**values),
    )


def _steps(text: str, values: Mapping[str, str]) -> Iterator[Step]:
    for block in re.split(r"\n(?=[^?!\s])", text.strip().replace("\\\n", " ")):
        what, *commands = block.splitlines()
        words = [tuple(word.format(**values) for word in shlex.split(line[1:])) for line in commands]
        found = words.pop(0) if commands[0].startswith("?") else None
        yield Step(what=what.format(**values), find=found, make=tuple(words))


def show(plan: BootstrapPlan, *, report: Callable[[str], object]) -> None:
    """Report the commands of a plan, and how to use the resources, without a login."""
    for step in plan.steps:
        when = "runs each time" if step.find is None else "runs if it does not exist"
        report(f"{step.what}: {when}\n" + "\n".join(f"  {shlex.join(words)}" for words in step.make))
    report(_use_of(plan))


def bootstrap(plan: BootstrapPlan, runner: Runner, *, report: Callable[[str], object]) -> None:
    """Run the steps of a plan that are not done yet, and report each; then report how to use the resources.

    Raises ConfigError if a command fails; the next run continues from there.
    """
    for step in plan.steps:
        if _exists(step, runner):
            report(f"{step.what}: exists")
        else:
            output = ""
            for words in step.make:
                output = _required(tuple(word.replace(OUTPUT, output) for word in words), runner)
            report(f"{step.what}: {'set' if step.find is None else 'created'}")
    report(_use_of(plan))


def _use_of(plan: BootstrapPlan) -> str:
    return (
        f'\npulumi login "{plan.login}"\npulumi stack init STACK --secrets-provider "{plan.secrets_provider}"'
    )


def _check(cloud: str, name: str, project: str | None) -> None:
    allowed = "3 to 24 lower-case letters, digits and hyphens; a letter first, no hyphen last"
    fix = "Write a name such as acme-pulumi-state."
    named = _NAME.fullmatch(name) is not None
    problems = [] if named else [Problem(field="--name", value=name, allowed=allowed, fix=fix)]
    if (cloud == "gcp") != (project is not None):
        allowed = "a project's ID on Google Cloud, nothing on other clouds"
        fix = "Add `--project my-project`." if cloud == "gcp" else "Remove it."
        problems.append(Problem(field="--project", value=project or "nothing", allowed=allowed, fix=fix))
    if problems:
        raise ConfigError(problems)


def _exists(step: Step, runner: Runner) -> bool:
    if step.find is None:
        return False
    answer = runner(step.find)
    if answer.code != 0 and not _ABSENT.search(answer.errors):
        raise _failed(step.find, answer)
    return answer.code == 0


def _required(words: Words, runner: Runner) -> str:
    answer = runner(words)
    if answer.code != 0:
        raise _failed(words, answer)
    return answer.output


def _failed(words: Words, answer: CommandResult) -> ConfigError:
    return ConfigError.of(
        field=f"`{shlex.join(words)}`",
        value=" ".join(answer.errors.split()) or f"exit code {answer.code}",
        allowed="a command that succeeds with your credentials, and a name that is free or your own",
        fix="Log in, request the right that is missing, or choose another --name; then run the command again.",
    )
