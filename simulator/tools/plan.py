"""What has to be made, and in which order: decided before anything runs."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum

from holdfast.simulator.tools.catalogue import Tool
from holdfast.simulator.tools.charts import ChartSource


class State(Enum):
    """How a piece stands before the build."""

    ON_PATH = "from PATH"
    THERE = "already there"
    MISSING = "to be made"


@dataclass(frozen=True, kw_only=True)
class Survey:
    """What was found: every tool and every chart with its state."""

    tools: dict[Tool, State]
    charts: dict[ChartSource, State]

    @property
    def missing(self) -> list[str]:
        """What has to be made, by title."""
        return [
            piece.title
            for piece, state in (*self.tools.items(), *self.charts.items())
            if state is State.MISSING
        ]

    @property
    def modules(self) -> set[str]:
        """The folders under tools/ that something missing comes from."""
        both = (*self.tools.items(), *self.charts.items())
        return {piece.module for piece, state in both if state is State.MISSING}


Piece = Tool | ChartSource


def chains(survey: Survey, module_chains: Sequence[Sequence[str]]) -> list[list[Piece]]:
    """Order the missing pieces into chains that may run side by side.

    The charts come first, as a chain of their own: they are downloads, and cost no compiler.
    Tools of one module, and of modules in one chain, run one after another in the catalogue's order, because
    what the first compiles the next finds in Go's cache. A chain with nothing to do is left out.
    """
    gathered: list[Piece] = [chart for chart, state in survey.charts.items() if state is State.MISSING]
    built = [_chain_tools(survey, modules) for modules in module_chains]
    return [chain for chain in (gathered, *built) if chain]


def _chain_tools(survey: Survey, modules: Collection[str]) -> list[Piece]:
    missing = [tool for tool, state in survey.tools.items() if state is State.MISSING]
    return [tool for module in modules for tool in missing if tool.module == module]
