"""Trains as the examples' `train.py` does, but for what MISBEHAVES names: a program as its author should not write it."""

# It runs beside the examples' programs, which this environment does not import.
# pyright: basic, reportMissingImports=false

import json
import os
import subprocess
import sys
from pathlib import Path

from checkpoints import checkpoints_of
from train import Notice, next_state, train

HOW = os.environ["MISBEHAVES"]
STEPS_BEFORE_CRASH = 7
CRASHED = 3
#: Writes on after the program's end, unless it is killed.
CHILD = "import pathlib, sys, time\nwhile True: pathlib.Path(sys.argv[1]).touch(); time.sleep(0.1)"


class Deaf(Notice):
    """Hears SIGTERM and goes on, until SIGKILL."""

    def _hear(self, _signal, _frame):
        print("ignores SIGTERM", flush=True)


class Content(Notice):
    """Ends on SIGTERM as if all were done."""

    def _hear(self, _signal, _frame):
        os._exit(0)


class Forgetful:
    """No checkpoints."""

    def latest(self):
        return None

    def save(self, state):
        del state


class Torn:
    """Dies in the middle of its second checkpoint, which it writes in place."""

    def __init__(self, kept, folder):
        self._kept = kept
        self._folder = folder
        self._saved = 0

    def latest(self):
        return self._kept.latest()

    def save(self, state):
        self._saved += 1
        if self._saved == 1:
            self._kept.save(state)
            return
        text = json.dumps(state)
        (self._folder / f"step-{state['step']:09d}.json").write_text(text[: len(text) // 2])
        os._exit(CRASHED)


def crashing(count):
    """Return a step that ends the program after so many."""
    left = count

    def step(state):
        nonlocal left
        left -= 1
        if left < 0:
            os._exit(CRASHED)
        return next_state(state)

    return step


def misbehave_at_start(folder):
    """Do what is done before the first step."""
    match HOW:
        case "crashes-at-start":
            sys.exit("no module named nothing")
        case "leaves-a-child":
            folder.mkdir(parents=True, exist_ok=True)
            subprocess.Popen([sys.executable, "-c", CHILD, folder / "child"], start_new_session=True)
        case "fills-the-disk":
            with Path(os.environ["SCRATCH"], "full").open("wb") as file:
                while True:
                    file.write(bytes(2**20))
        case "prints-a-gigabyte":
            for _ in range(1024):
                sys.stdout.write(("x" * 1023 + "\n") * 1024)


def main():
    """Misbehave."""
    checkpoints = checkpoints_of(os.environ["CHECKPOINT_URI"], os.environ["RUN"])
    folder = Path(os.environ["CHECKPOINT_URI"].removeprefix("file://")) / os.environ["RUN"]
    misbehave_at_start(folder)
    notice = {"exits-zero": Content, "hangs-in-sigterm": Deaf}.get(HOW, Notice)()
    notice.listen()
    if HOW == "tears-checkpoints":
        checkpoints = Torn(checkpoints, folder)
    if HOW == "writes-no-checkpoint":
        checkpoints = Forgetful()
    crashes = HOW in ("crashes-again-and-again", "leaves-a-child")
    train(checkpoints, notice=notice, step=crashing(STEPS_BEFORE_CRASH) if crashes else None)


if __name__ == "__main__":
    main()
