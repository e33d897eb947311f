"""Trains a model of two weights, writes checkpoints, and resumes from the latest one.

It shows the pattern: load the latest checkpoint first, write one every few steps and once more on SIGTERM, then exit with
an error. A program that exits with 0 on SIGTERM is not restarted. Where spot machines disappear without notice, only the
regular checkpoints count. CHECKPOINT_URI says where to write them.

Each step depends only on the previous state and its number. So an interrupted run ends with exactly the weights of an
uninterrupted one, which shows that no step was skipped or repeated.
"""

import os
import random
import signal
import sys
import time

from checkpoints import checkpoints_of
from progress import Progress, progress_of

STEPS = int(os.environ.get("STEPS", "3600"))
STEPS_BETWEEN_CHECKPOINTS = int(os.environ.get("STEPS_BETWEEN_CHECKPOINTS", "60"))
SECONDS_PER_STEP = float(os.environ.get("SECONDS_PER_STEP", "1"))
# The exit code that a shell reports after SIGTERM.
STOPPED = 128 + signal.SIGTERM

BEGINNING = {"step": 0, "weights": [0.0, 0.0]}


class Notice:
    """Whether SIGTERM has arrived. The program checks between two steps."""

    def __init__(self):
        self.is_heard = False

    def listen(self):
        """Handle SIGTERM from now on."""
        signal.signal(signal.SIGTERM, self._hear)

    def _hear(self, _signal, _frame):
        self.is_heard = True


def train(checkpoints, *, saves=True, notice=None, step=None):
    """Train from the latest checkpoint to the last step. Only one worker of a job has `saves`."""
    notice, step = notice or Notice(), step or next_state
    progress = progress_of(STEPS) if saves else Progress(STEPS, None)
    state = checkpoints.latest() or BEGINNING
    began = state["step"]
    print(f"continues from step {began}", flush=True)
    progress.report(began, at_once=True)
    while state["step"] < STEPS and not notice.is_heard:
        state = step(state)
        if saves and (state["step"] % STEPS_BETWEEN_CHECKPOINTS == 0 or state["step"] == STEPS):
            checkpoints.save(state)
        progress.report(state["step"], at_once=state["step"] == STEPS)
    if state["step"] < STEPS:
        # The machine is about to stop: keep the steps since the last checkpoint.
        if saves and state["step"]:
            checkpoints.save(state)
            progress.report(state["step"], at_once=True)
        print(f"stops after step {state['step']}", flush=True)
        print(summary(began, state), flush=True)
        raise SystemExit(STOPPED)
    print(f"has trained {state['step']} steps: {state['weights']}", flush=True)
    print(summary(began, state), flush=True)
    return state


def summary(began, state):
    """The attempt in one line, the last one of the log."""
    return f"summary: this attempt continued from step {began} and ended after step {state['step']}"


def next_state(state):
    """The next state: one gradient step toward a line through random points, seeded by the step number."""
    number = state["step"] + 1
    points = random.Random(number)  # noqa: S311 - data to train on, no secret
    offset, slope = state["weights"]
    x = points.uniform(-1, 1)
    error = offset + slope * x - (1 + 2 * x + points.gauss(0, 0.1))
    time.sleep(SECONDS_PER_STEP)
    print(f"step {number}", flush=True)
    return {"step": number, "weights": [offset - 0.05 * error, slope - 0.05 * error * x]}


def main():
    """Train as configured by the environment."""
    notice = Notice()
    notice.listen()
    if "CHECKPOINT_URI" not in os.environ:
        sys.exit("CHECKPOINT_URI: not set; take it from the ConfigMap checkpoints, with envFrom")
    checkpoints = checkpoints_of(os.environ["CHECKPOINT_URI"], os.environ.get("RUN", "first"))
    # An indexed Job numbers its pods; all of them hold the same weights.
    train(checkpoints, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0", notice=notice)


if __name__ == "__main__":
    main()
