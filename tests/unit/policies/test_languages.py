"""The pack on one program as the SDKs of four languages send it, as the engine sent it with their language hosts."""

import json
from copy import deepcopy
from functools import cache
from typing import cast

import pytest
from google.protobuf import json_format
from pulumi.runtime.proto import analyzer_pb2
from pulumi_policy.proxy import UNKNOWN_STRING_VALUE

from pulumi_holdfast.ladder.json import Json
from tests.support.doc_pages import ROOT
from tests.support.fakes.policy_engine import NO_CONTEXT, Pack

LANGUAGES = ("python", "typescript", "go", "yaml")
VARIANTS = ("sound", "strands")


@cache
def recording(language: str, variant: str) -> Json:
    """What the engine sent to a pack for the program's variant in a language."""
    text = (ROOT / f"tests/fixtures/languages/{language}.json").read_text("utf-8")
    return cast("dict[str, Json]", json.loads(text))[variant]


def judged(language: str, variant: str) -> list[tuple[str, int, str]]:
    """The policies that report something, their levels and what they say, without the resource they say it of."""
    return report_on(recording(language, variant))


def report_on(recorded: Json) -> list[tuple[str, int, str]]:
    """What the pack reports on what the engine sent."""
    pack = Pack()
    for each in cast("list[Json]", recorded["registered"]):
        pack.servicer.Analyze(json_format.ParseDict(dict(each), analyzer_pb2.AnalyzeRequest()), NO_CONTEXT)
    stack = json_format.ParseDict(dict(cast("Json", recorded["stack"])), analyzer_pb2.AnalyzeStackRequest())
    found = pack.servicer.AnalyzeStack(stack, NO_CONTEXT).diagnostics
    return sorted((each.policyName, each.enforcementLevel, each.message) for each in found)


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_program_in_another_language_is_judged_as_in_python(language: str, variant: str) -> None:
    found = judged(language, variant)
    assert found == judged("python", variant)
    stopping = [name for name, level, _ in found if level == analyzer_pb2.MANDATORY]
    (verdict,) = [message for name, _, message in found if name == "training-verdicts"]
    if variant == "sound":
        assert stopping == []
        assert "namespace 'vision': proved" in verdict
    else:
        assert stopping == ["training-reaches-on-demand"]
        assert "at most 8 of the 16 pods" in verdict


def test_recordings_have_the_shapes_in_which_languages_differ() -> None:
    def sent(language: str, type_token: str) -> list[Json]:
        stack = cast("Json", recording(language, "sound")["stack"])
        found = (each for each in cast("list[Json]", stack["resources"]) if each["type"] == type_token)
        return [cast("Json", each.get("properties", {})) for each in found]

    node_pool = "kubernetes:karpenter.sh/v1:NodePool"
    for language in LANGUAGES:
        assert len(sent(language, node_pool)) == 2, f"{language}: NodePools have Kubernetes' own type"
    assert sent("yaml", "kubernetes:yaml/v2:ConfigGroup")
    taints = {
        language: [
            "taints" in cast("Json", cast("Json", cast("Json", each["spec"])["template"])["spec"])
            for each in sent(language, node_pool)
        ]
        for language in LANGUAGES
    }
    assert taints["typescript"] != taints["python"]


CONFIG_GROUP = "kubernetes:yaml/v2:ConfigGroup"
KUBERNETES = "pulumi:providers:kubernetes"


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("component", [CONFIG_GROUP, "kubernetes:helm.sh/v4:Chart"])
def test_objects_that_the_engine_does_not_construct_yet_are_not_judged(component: str, variant: str) -> None:
    recorded = deepcopy(recording("yaml", variant))
    resources = cast("list[dict[str, object]]", cast("Json", recorded["stack"])["resources"])
    (group,) = [each["urn"] for each in resources if each["type"] == CONFIG_GROUP]
    # The engine registers the component itself, without its objects, and the kubeconfig has no value.
    kept = [each for each in resources if each.get("parent") != group]
    for each in kept:
        if each["type"] == CONFIG_GROUP:
            each["type"] = component
        if each["type"] == KUBERNETES:
            each["properties"] = {"kubeconfig": UNKNOWN_STRING_VALUE}
    found = report_on(cast("Json", {"registered": [], "stack": {"resources": kept}}))
    stopping = [message for _, level, message in found if level == analyzer_pb2.MANDATORY]
    assert stopping == []
    said = [message for name, _, message in found if name == "training-verdicts"]
    assert any("namespace 'vision': not judged" in each for each in said)
    assert any("does not show the objects of 'objects'" in each for each in said)
