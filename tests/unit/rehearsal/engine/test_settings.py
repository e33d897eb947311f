"""A rehearsal runs with copies of the project and stack file."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pulumi_holdfast.ladder.json import Json, JsonValue
from pulumi_holdfast.rehearsal.engine.settings import (
    SECRET_PLACEHOLDER,
    read_yaml,
    rehearsed_project,
    rehearsed_stack,
    stack_file,
    write_yaml,
)
from pulumi_holdfast.rehearsal.errors import RehearsalError
from pulumi_holdfast.rehearsal.paths import Workspace


def _workspace(root: Path, *stacks: str) -> Workspace:
    write_yaml(root / "Pulumi.yaml", {"name": "holdfast", "stackConfigDir": "stacks"})
    (root / "stacks").mkdir()
    for stack in stacks:
        write_yaml(root / "stacks" / f"Pulumi.{stack}.yaml", {"config": {}})
    return Workspace(project_root=root)


def test_the_copies_contain_no_account_and_no_secret() -> None:
    tracked = {"name": "holdfast", "main": "infra", "stackConfigDir": "stacks", "runtime": {"name": "python"}}
    assert rehearsed_project(tracked) == {"name": "holdfast", "runtime": "python"}
    tracked: Json = {
        "secretsprovider": "awskms://key",
        "encryptedkey": "x",
        "environment": ["prod"],
        "config": {},
    }
    assert rehearsed_stack(tracked, previous={}) == {"config": {}}, "the engine would call that account"
    tracked = {"config": {"a:top": {"secure": "v1:x"}, "a:deep": {"list": [{"key": {"secure": "v1:y"}}]}}}
    copied = rehearsed_stack(tracked, previous={})
    assert copied["config"] == {
        "a:top": SECRET_PLACEHOLDER,
        "a:deep": {"list": [{"key": SECRET_PLACEHOLDER}]},
    }
    copied = rehearsed_stack(
        {"encryptionsalt": "tracked", "config": {}}, previous={"encryptionsalt": "ours", "config": {"old": 1}}
    )
    assert copied == {"config": {}, "encryptionsalt": "ours"}


@given(
    st.dictionaries(
        st.sampled_from(["a:key", "b:key", "c:key"]),
        st.recursive(
            st.integers() | st.sampled_from(["x", "v1:x"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.sampled_from(["secure", "x", "y"]), inner, min_size=2)
            ),
            max_leaves=4,
        ),
    )
)
def test_configuration_without_secrets_is_copied_as_it_is(config: dict[str, JsonValue]) -> None:
    assert rehearsed_stack({"config": config}, previous={}) == {"config": config}


def test_an_unknown_stack_and_an_invalid_file_are_refused(tmp_path: Path) -> None:
    workspace = _workspace(tmp_path, "local", "aws-dev")
    with pytest.raises(RehearsalError, match=r"no stack 'prod'.*stacks: aws-dev, local"):
        stack_file("prod", workspace)
    broken = tmp_path / "Pulumi.broken.yaml"
    broken.write_text("config: [")
    with pytest.raises(RehearsalError, match=r"Pulumi\.broken\.yaml is not YAML"):
        read_yaml(broken)
    listed = tmp_path / "Pulumi.listed.yaml"
    listed.write_text("- config")
    with pytest.raises(RehearsalError, match="is not a mapping"):
        read_yaml(listed)
