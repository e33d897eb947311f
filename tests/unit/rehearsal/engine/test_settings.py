"""A rehearsal runs with copies of the project and stack file."""

from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.rehearsal.engine.settings import SECRET_PLACEHOLDER, rehearsed_project, rehearsed_stack


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
