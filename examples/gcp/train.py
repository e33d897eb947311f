"""Trains, after a fashion: counts steps, keeps how far it got in GCS, and goes on from there when it starts again.

What it shows is the shape: look for the latest checkpoint first, write one every so many steps and once more when told
to stop, and end with a failure then. A program that ends well because it was told to stop is never started again.
Where to write to comes from CHECKPOINT_URI, the right to do so from the pod's service account.
"""

import json
import os
import signal
import time
from urllib.parse import urlsplit

STEPS = int(os.environ.get("STEPS", "3600"))
STEPS_BETWEEN_CHECKPOINTS = 60
CHECKPOINTS_KEPT = 3
# What a shell reports for a program that SIGTERM ended.
STOPPED = 128 + signal.SIGTERM


class Checkpoints:
    """The checkpoints of one run, under its own part of the namespace's folder."""

    def __init__(self, storage, uri, run):
        address = urlsplit(uri)
        # Not `get_bucket`, which asks for the bucket itself: the pod has rights to its namespace's folder alone.
        self._bucket = storage.bucket(address.netloc)
        self._prefix = f"{address.path.strip('/')}/{run}/"

    def latest(self):
        """The newest checkpoint; the start of a run that has none."""
        blobs = self._blobs()
        return json.loads(blobs[-1].download_as_bytes()) if blobs else {"step": 0}

    def save(self, state):
        """Keep a state, and of the older ones the newest few: nothing else ever removes a current object."""
        # An object is there whole or not at all: a program that is killed here leaves no half of a checkpoint.
        blob = self._bucket.blob(f"{self._prefix}step-{state['step']:09d}.json")
        blob.upload_from_string(json.dumps(state))
        for old in self._blobs()[:-CHECKPOINTS_KEPT]:
            old.delete()

    def _blobs(self):
        # Always with the prefix: what is beside it is not the pod's to list.
        return sorted(self._bucket.list_blobs(prefix=self._prefix), key=lambda blob: blob.name)


def train(checkpoints, *, saves=True, step=lambda: time.sleep(1)):
    """Train to the end from wherever the last attempt got to; `saves` is for one of a job's workers alone."""
    state = checkpoints.latest()
    print(f"goes on from step {state['step']}", flush=True)
    try:
        while state["step"] < STEPS:
            step()
            state = {"step": state["step"] + 1}
            if saves and state["step"] % STEPS_BETWEEN_CHECKPOINTS == 0:
                checkpoints.save(state)
    except SystemExit:
        # The machine is being taken back: whatever was done since the last checkpoint need not be done again.
        if saves:
            checkpoints.save(state)
        raise
    return state["step"]


def main():
    """Train as the environment says."""
    from google.cloud import storage  # here, so that reading this file needs nothing

    run = os.environ.get("RUN", "first")
    checkpoints = Checkpoints(storage.Client(), os.environ["CHECKPOINT_URI"], run)
    # Kubernetes numbers the pods of an indexed job; the others of one step hold the same weights as the first.
    return train(checkpoints, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0")


def stop(_signal, _frame):
    """End with a failure, so that the job is started again."""
    raise SystemExit(STOPPED)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main()
