"""Without the AWS CLI nobody gets into the cluster, and that is said before it is made."""

from holdfast.infra.aws.preflight.checks import credential_plugin_problem


def test_a_missing_cli_is_refused_with_the_way_to_get_it() -> None:
    problem = credential_plugin_problem(lambda _: None)
    assert problem is not None, "the cluster would be made, and nobody would get in"
    assert problem.field == "aws", "the user looks for another command"
    assert "Install it" in problem.fix, "the user is left alone with it"


def test_a_cli_that_is_there_is_nothing_to_talk_about() -> None:
    assert credential_plugin_problem(lambda command: f"/usr/bin/{command}") is None, "there is nothing to say"
