"""Names, labels and versions."""

import re
from pathlib import Path
from string import ascii_letters, digits

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.config import naming, versions
from pulumi_holdfast.kubernetes import labels
from pulumi_holdfast.ladder.ladder import is_dns_label

ROOT = Path(__file__).parents[3]


@given(st.text(max_size=100))
def test_a_suggested_name_is_valid(text: str) -> None:
    suggested = naming.as_dns_label(text)
    assert suggested == "" or is_dns_label(suggested), f"{text!r}: {suggested!r} is invalid"


@given(st.from_regex(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", fullmatch=True))
def test_a_valid_name_is_its_own_suggestion(name: str) -> None:
    assert is_dns_label(name)


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a_b", "a.b", "a\n", "ä", "a" * 64])
def test_a_name_that_kubernetes_rejects_is_invalid(name: str) -> None:
    assert not is_dns_label(name)


def test_logical_names_of_different_concepts_differ() -> None:
    made = [each("main", "a") for each in (naming.pool, naming.training_namespace, naming.checkpoint_claim)]
    assert len(set(made)) == len(made), "a pool and a namespace may have one name"


@given(st.from_regex(r"[A-Za-z0-9_.-]{1,100}", fullmatch=True))
def test_any_stack_name_makes_a_label(stack: str) -> None:
    value = labels.stack_labels(stack)[labels.STACK]
    assert re.fullmatch(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?", value)


STACKS = st.text(f"{ascii_letters}{digits}_.-", min_size=1, max_size=100)
#: Cloud → names a cluster after its stack, and what the cloud accepts. AKS: the API server's name begins with it.
CLUSTERS = {
    "aws": (naming.cluster, r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}"),
    "azure": (naming.aks_cluster_name, r"(?!.*--)(?=.{1,54}$)holdfast-[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "gcp": (naming.gke_cluster_name, r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?"),
}


@pytest.mark.parametrize("cloud", CLUSTERS)
@given(stack=STACKS)
def test_any_stack_name_makes_a_valid_cluster_name(cloud: str, stack: str) -> None:
    name_of, valid = CLUSTERS[cloud]
    assert re.fullmatch(valid, name_of(stack))
    assert name_of(f"{cloud}-dev") == f"holdfast-{cloud}-dev"


@pytest.mark.parametrize("cloud", ["azure", "gcp"])
@given(stacks=st.lists(STACKS, min_size=2, unique=True))
def test_no_two_stacks_share_a_cluster_name(cloud: str, stacks: list[str]) -> None:
    name_of, _ = CLUSTERS[cloud]
    assert len({name_of(stack) for stack in stacks}) == len(stacks), "the second could not be made"


def test_an_objects_own_label_takes_precedence() -> None:
    merged = labels.with_labels(
        {"name": "x", "labels": {"team": "vision"}}, {"team": "all", "stack": "local"}
    )
    assert merged == {"name": "x", "labels": {"team": "vision", "stack": "local"}}


def pinned(folder: str, module: str) -> str:
    text = (ROOT / "tools" / folder / "go.mod").read_text()
    found = re.search(rf"^\s*(?:require )?{re.escape(module)} v(\S+)", text, re.MULTILINE)
    assert found, f"tools/{folder}/go.mod pins {module}"
    return found[1]


@pytest.mark.parametrize(
    ("version", "folder", "module"),
    [
        (versions.JOBSET, "kubernetes", "sigs.k8s.io/jobset"),
        (versions.KARPENTER, "karpenter", "sigs.k8s.io/karpenter"),
        (versions.KUBERAY, "kuberay", "github.com/ray-project/kuberay"),
    ],
)
def test_deployed_versions_are_those_of_the_tools(version: str, folder: str, module: str) -> None:
    assert version == pinned(folder, module)


def test_the_kubernetes_version_is_that_of_the_control_plane_built() -> None:
    minor = pinned("kubernetes", "k8s.io/kubernetes").split(".")[:2]
    assert ".".join(minor) == versions.KUBERNETES
