"""The roles of previews read what the program queries, and change nothing."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pulumi_holdfast.ladder.json import Json
from tests.support.doc_pages import ROOT, DocPage
from tests.support.fakes.iam_linter import lint
from tests.support.json_objects import obj, objects

ROLES = ROOT / "docs" / "preview-roles"
CONFIGURATION = DocPage.read("docs/configuration.md")
READS = re.compile(r"(Describe|Get|List|Decrypt)")

#: Modules with the commands of other callers: of `holdfast preflight`, and those that fix a problem.
COMMANDS = {"checks.py", "usage.py"}

#: Needed by no role: AWS allows it to every caller.
ALWAYS_ALLOWED = {"sts:GetCallerIdentity"}


def document(name: str) -> Json:
    return obj(json.loads((ROLES / name).read_text("utf-8")))


def actions_of_aws() -> set[str]:
    given = [statement["Action"] for statement in objects(document("aws-permissions.json")["Statement"])]
    return {str(each) for one in given for each in ([one] if isinstance(one, str) else objects(one))}


def queried(cloud: str, pattern: str) -> set[str]:
    """The names of the queries that a cloud's program makes, of existing clusters and earlier runs too."""
    modules = sorted((ROOT / "components/pulumi_holdfast" / cloud / "preflight").glob("*.py"))
    texts = [module.read_text("utf-8") for module in modules if module.name not in COMMANDS]
    return {found for text in texts for found in re.findall(pattern, text)}


def test_the_role_on_aws_allows_every_query_and_only_reads(tmp_path: Path) -> None:
    actions = actions_of_aws()
    needed = queried("aws", r"\b((?:cloudformation|ec2|eks|iam|kms|logs|servicequotas|sts|tag):[A-Z]\w+)")
    assert {"eks:DescribeCluster", "tag:GetResources", "ec2:DescribeSubnets"} <= needed
    (listed,) = re.findall(r"The queries are (`sts:.*?)\. ", CONFIGURATION.text, re.DOTALL)
    # Some of them the provider makes beside those that the program names.
    needed |= set(re.findall(r"`(\w+:\w+)`", listed))
    assert needed - ALWAYS_ALLOWED <= actions
    assert all(READS.match(action.partition(":")[2]) for action in actions)
    text = (ROLES / "aws-permissions.json").read_text("utf-8")
    assert lint({"preview": text}, tmp_path) == []


def test_only_the_environment_of_one_stack_assumes_the_role_on_aws() -> None:
    (statement,) = objects(document("aws-trust.json")["Statement"])
    conditions = obj(obj(statement["Condition"])["StringEquals"])
    subject = str(conditions["token.actions.githubusercontent.com:sub"])
    assert re.fullmatch(r"repo:[^*:]+:environment:preview-[^*]+", subject)
    assert conditions["token.actions.githubusercontent.com:aud"] == "sts.amazonaws.com"
    assert statement["Action"] == "sts:AssumeRoleWithWebIdentity"


def test_the_role_on_google_cloud_allows_every_query_and_only_reads() -> None:
    role = obj(yaml.safe_load((ROLES / "gcp-role.yaml").read_text("utf-8")))
    permissions = {str(each) for each in objects(role["includedPermissions"])}
    assert all(each.endswith((".get", ".list")) for each in permissions)
    needed = queried(
        "gcp", r'"((?:cloudquotas|compute|container|resourcemanager|storage)[\w.]+\.(?:get|list))"'
    )
    assert needed <= permissions


def test_the_role_on_azure_only_reads() -> None:
    role = document("azure-role.json")
    actions = [str(each) for each in (*objects(role["Actions"]), *objects(role["DataActions"]))]
    needed = queried("azure", r"(Microsoft\.\w+/[\w/]+/read)")
    assert needed
    assert needed <= set(actions)
    others = {each for each in actions if not each.endswith("/read")}
    assert others == {
        # Without local accounts it has no certificate or token: Entra ID authorizes each request.
        "Microsoft.ContainerService/managedClusters/listClusterUserCredential/action",
        "Microsoft.KeyVault/vaults/keys/decrypt/action",
    }
    assert not any("*" in each for each in actions)


@pytest.mark.parametrize(
    "name", ["aws-permissions.json", "aws-trust.json", "azure-role.json", "gcp-role.yaml"]
)
def test_operations_link_each_document(name: str) -> None:
    assert f"preview-roles/{name}" in DocPage.read("docs/operations.md").text
