"""Trains a model of two weights, keeps how far it got, and goes on from there when it starts again.

What it shows is the shape: look for the latest checkpoint first, write one every so many steps and once more when told
to stop, and end with a failure then. A program that ends well because it was told to stop is never started again. Where
spot machines go without a word, what counts are the checkpoints in between. Where to write to comes from CHECKPOINT_URI.

Each step follows from the one before it and its own number alone. So a run that was interrupted ends with the very
weights of one that was not, which shows that no step was left out and none was done twice.
"""

import os
import random
import signal
import sys
import time

from checkpoints import checkpoints_of

STEPS = int(os.environ.get("STEPS", "3600"))
STEPS_BETWEEN_CHECKPOINTS = int(os.environ.get("STEPS_BETWEEN_CHECKPOINTS", "60"))
SECONDS_PER_STEP = float(os.environ.get("SECONDS_PER_STEP", "1"))
# What a shell reports for a program that SIGTERM ended.
STOPPED = 128 + signal.SIGTERM

BEGINNING = {"step": 0, "weights": [0.0, 0.0]}


class Notice:
    """Whether the program was told to stop: heard at any time, heeded between two steps."""

    def __init__(self):
        self.is_heard = False

    def listen(self):
        """Hear SIGTERM from now on."""
        signal.signal(signal.SIGTERM, self._hear)

    def _hear(self, _signal, _frame):
        self.is_heard = True


def train(checkpoints, *, saves=True, notice=None, step=None):
    """Train to the end from wherever the last attempt got to; `saves` is for one of a job's workers alone."""
    notice, step = notice or Notice(), step or next_state
    state = checkpoints.latest() or BEGINNING
    print(f"goes on from step {state['step']}", flush=True)
    while state["step"] < STEPS and not notice.is_heard:
        state = step(state)
        if saves and (state["step"] % STEPS_BETWEEN_CHECKPOINTS == 0 or state["step"] == STEPS):
            checkpoints.save(state)
    if state["step"] < STEPS:
        # The machine is being taken back: whatever was done since the last checkpoint need not be done again.
        if saves and state["step"]:
            checkpoints.save(state)
        print(f"stops after step {state['step']}", flush=True)
        raise SystemExit(STOPPED)
    print(f"has trained {state['step']} steps: {state['weights']}", flush=True)
    return state


def next_state(state):
    """The state one step on: one move towards a line through points that the step's number draws."""
    number = state["step"] + 1
    points = random.Random(number)  # noqa: S311 - data to train on, no secret
    offset, slope = state["weights"]
    x = points.uniform(-1, 1)
    error = offset + slope * x - (1 + 2 * x + points.gauss(0, 0.1))
    time.sleep(SECONDS_PER_STEP)
    print(f"step {number}", flush=True)
    return {"step": number, "weights": [offset - 0.05 * error, slope - 0.05 * error * x]}


def main():
    """Train as the environment says."""
    notice = Notice()
    notice.listen()
    if "CHECKPOINT_URI" not in os.environ:
        sys.exit("CHECKPOINT_URI: not set; take it from the ConfigMap checkpoints, with envFrom")
    checkpoints = checkpoints_of(os.environ["CHECKPOINT_URI"], os.environ.get("RUN", "first"))
    # Kubernetes numbers the pods of an indexed job; the others of one step hold the same weights as the first.
    train(checkpoints, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0", notice=notice)


if __name__ == "__main__":
    main()
