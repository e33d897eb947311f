"""Trains, after a fashion: counts steps, keeps how far it got in Blob Storage, and goes on from there when it starts again.

What it shows is the shape: look for the latest checkpoint first, write one every so many steps and once more when told
to stop, and end with a failure then. A program that ends well because it was told to stop is never started again.
On Azure a spot machine is often gone within 10 s, or before anybody is told: what counts are the checkpoints in between.
Where to write to comes from CHECKPOINT_URI, the right to do so from the pod's service account.
"""

import json
import os
import signal
import time
from urllib.parse import urlsplit

STEPS = int(os.environ.get("STEPS", "3600"))
# So much is lost with a machine that goes without a word.
STEPS_BETWEEN_CHECKPOINTS = 30
CHECKPOINTS_KEPT = 3
# What a shell reports for a program that SIGTERM ended.
STOPPED = 128 + signal.SIGTERM


class Checkpoints:
    """The checkpoints of one run, under its own part of the namespace's container."""

    def __init__(self, container, run):
        self._container = container
        self._prefix = f"{run}/"

    def latest(self):
        """The newest checkpoint; the start of a run that has none."""
        names = self._names()
        return json.loads(self._container.download_blob(names[-1]).readall()) if names else {"step": 0}

    def save(self, state):
        """Keep a state, and of the older ones the newest few: nothing else ever removes a current blob."""
        # A blob is there whole or not at all: a program that is killed here leaves no half of a checkpoint.
        name = f"{self._prefix}step-{state['step']:09d}.json"
        self._container.upload_blob(name, json.dumps(state), overwrite=True)
        for old in self._names()[:-CHECKPOINTS_KEPT]:
            self._container.delete_blob(old)

    def _names(self):
        return sorted(self._container.list_blob_names(name_starts_with=self._prefix))


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


def place(uri):
    """The account's address and the container's name in `abfss://<container>@<account>.dfs.core.windows.net`."""
    address = urlsplit(uri)
    return f"https://{address.hostname.replace('.dfs.', '.blob.')}", address.username


def main():
    """Train as the environment says."""
    # Here, so that reading this file needs nothing.
    from azure.identity import WorkloadIdentityCredential
    from azure.storage.blob import ContainerClient

    account, container = place(os.environ["CHECKPOINT_URI"])
    client = ContainerClient(account, container, credential=WorkloadIdentityCredential())
    checkpoints = Checkpoints(client, os.environ.get("RUN", "first"))
    # Kubernetes numbers the pods of an indexed job; the others of one step hold the same weights as the first.
    return train(checkpoints, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0")


def stop(_signal, _frame):
    """End with a failure, so that the job is started again."""
    raise SystemExit(STOPPED)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main()
