"""The commands that run the engine on a stack."""

from collections.abc import Callable

from holdfast.rehearsal.cli.output import say
from holdfast.rehearsal.cli.summary import summary, verdict_lines
from holdfast.simulator.pulumi import EngineFailure, Outcome
from holdfast.simulator.stacks import Stack


def preview(stack: Stack) -> None:
    """Show the engine's plan, then the policies' verdicts, then a summary."""
    say(f"The plan of {stack.name}, by the real engine; every cloud is a stand-in.")
    with stack.surroundings.lent(), stack.session() as rehearsal:
        try:
            outcome = rehearsal.preview()
        except EngineFailure as failure:
            say_verdicts(failure.outcome)
            raise
    say_verdicts(outcome)
    _say_summary(outcome)


def up(stack: Stack) -> None:
    """Bring up the stack, and what it needs around it first."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.up)
    kubeconfig = stack.kubeconfig.relative_to(stack.workspace.project_root)
    say(f"Its API server: export KUBECONFIG={kubeconfig}")


def refresh(stack: Stack) -> None:
    """Read what there is into the stack's state."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.refresh)


def destroy(stack: Stack) -> None:
    """Remove the stack's resources; what is around them stays."""
    stack.surroundings.start()
    with stack.session() as rehearsal:
        _run(rehearsal.destroy)


def _run(command: Callable[[], Outcome]) -> None:
    _say_summary(command())


def say_verdicts(outcome: Outcome) -> None:
    """Show what the policies say of a plan."""
    say()
    say("Policies")
    for line in verdict_lines(outcome):
        say(line)


def _say_summary(outcome: Outcome) -> None:
    say()
    for line in summary(outcome):
        say(line)
