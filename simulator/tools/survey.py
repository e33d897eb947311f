"""What is there already: PATH, .tools/bin and .tools/charts looked at."""

from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.catalogue import TOOLS, Tool
from holdfast.simulator.tools.charts import CHARTS, chart_current
from holdfast.simulator.tools.locate import good_on_path
from holdfast.simulator.tools.plan import State, Survey
from holdfast.simulator.tools.stamps import built_and_current


def look(workspace: Workspace) -> Survey:
    """Return the state of every tool and chart. Raises RehearsalError where a go.mod cannot be read."""
    return Survey(
        tools={tool: _state(tool, workspace) for tool in TOOLS},
        charts={chart: State.THERE if chart_current(chart, workspace) else State.MISSING for chart in CHARTS},
    )


def _state(tool: Tool, workspace: Workspace) -> State:
    if good_on_path(tool, workspace) is not None:
        return State.ON_PATH
    return State.THERE if built_and_current(tool, workspace) else State.MISSING
