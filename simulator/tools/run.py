"""Everything that is missing, made: chains side by side, one failure ends them all."""

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.paths import Workspace
from holdfast.simulator.tools.build import build_tool, gather_chart
from holdfast.simulator.tools.catalogue import CHAINS, Tool
from holdfast.simulator.tools.failures import diagnose
from holdfast.simulator.tools.files import empty_partial_dir
from holdfast.simulator.tools.pins import read_go_module
from holdfast.simulator.tools.plan import Piece, Survey, chains
from holdfast.simulator.tools.process import GoRunner, Stopped
from holdfast.simulator.tools.progress import Progress
from holdfast.simulator.tools.toolchain import find_go, require_go


def make_missing(survey: Survey, workspace: Workspace, progress: Progress) -> None:
    """Make every missing piece of the survey, in .tools.

    Raises RehearsalError where Go is missing or too old, or where a piece fails; the others are then ended.
    What is finished stays, and Go's cache keeps most of what is not.
    """
    toolchain = find_go(survey.missing)
    tools = workspace.project_root / "tools"
    require_go(toolchain, [read_go_module(tools / module) for module in sorted(survey.modules)])
    empty_partial_dir(workspace)
    runner = GoRunner(toolchain)

    def make(piece: Piece) -> None:
        progress.started(piece.title)
        try:
            _make(piece, workspace, runner, lambda line: progress.line(piece.title, line))
        except OSError as error:
            message = diagnose(piece.title, [str(error)], proxy=toolchain.proxy, cache=toolchain.cache)
            raise RehearsalError(message) from error
        progress.finished(piece.title)

    with progress:
        _side_by_side(chains(survey, CHAINS), make, stop=runner.stop, tick=progress.tick)


def _make(piece: Piece, workspace: Workspace, runner: GoRunner, on_line: Callable[[str], None]) -> None:
    if isinstance(piece, Tool):
        build_tool(piece, workspace, runner, on_line)
    else:
        gather_chart(piece, workspace, runner, on_line)


def _side_by_side(
    work: Sequence[Sequence[Piece]],
    make: Callable[[Piece], None],
    *,
    stop: Callable[[], None],
    tick: Callable[[], None],
) -> None:
    def follow(chain: Sequence[Piece]) -> None:
        for piece in chain:
            make(piece)

    with ThreadPoolExecutor(max_workers=max(1, len(work))) as pool:
        running: set[Future[None]] = set()
        try:
            # Inside: a Ctrl-C between two submissions would otherwise wait for the first one's builds to end.
            running.update(pool.submit(follow, chain) for chain in work)
            _await(running, tick)
        finally:
            # On a failure or Ctrl-C the other chains end now; after a success there is nothing left to stop.
            stop()
    failures = [error for chain in running if (error := chain.exception()) is not None]
    told = [error for error in failures if not isinstance(error, Stopped)]
    if told:
        raise told[0]


def _await(running: set[Future[None]], tick: Callable[[], None]) -> None:
    pending = running
    while pending:
        done, pending = wait(pending, timeout=1.0, return_when=FIRST_EXCEPTION)
        if any(chain.exception() is not None for chain in done):
            return
        tick()
