"""What only the account knows: who calls, which zones it has, what it may buy. Asked before anything is made."""

from holdfast.infra.aws.preflight.checks import Account, cli_problem, zones_of_network
from holdfast.infra.aws.preflight.survey import survey

__all__ = ["Account", "cli_problem", "survey", "zones_of_network"]
