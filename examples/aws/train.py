"""Trains, after a fashion: counts steps, keeps how far it got in S3, and goes on from there when it starts again.

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
    """The checkpoints of one run, under its own part of the namespace's prefix."""

    def __init__(self, s3, uri, run):
        address = urlsplit(uri)
        self._s3 = s3
        self._bucket = address.netloc
        self._prefix = f"{address.path.strip('/')}/{run}/"

    def latest(self):
        """The newest checkpoint; the start of a run that has none.

        It lists: asked for an object that is not there, S3 answers a pod 403 and not 404.
        """
        keys = self._keys()
        if not keys:
            return {"step": 0}
        found = self._s3.get_object(Bucket=self._bucket, Key=keys[-1])
        return json.load(found["Body"])

    def save(self, state):
        """Keep a state, and of the older ones the newest few: nothing else ever removes a current object."""
        # An object is there whole or not at all: a program that is killed here leaves no half of a checkpoint.
        key = f"{self._prefix}step-{state['step']:09d}.json"
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=json.dumps(state).encode())
        for old in self._keys()[:-CHECKPOINTS_KEPT]:
            self._s3.delete_object(Bucket=self._bucket, Key=old)

    def _keys(self):
        pages = self._s3.get_paginator("list_objects_v2").paginate(Bucket=self._bucket, Prefix=self._prefix)
        return sorted(found["Key"] for page in pages for found in page.get("Contents", []))


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
    import boto3  # here, so that reading this file needs nothing

    run = os.environ.get("RUN", "first")
    checkpoints = Checkpoints(boto3.client("s3"), os.environ["CHECKPOINT_URI"], run)
    # Kubernetes numbers the pods of an indexed job; the others of one step hold the same weights as the first.
    return train(checkpoints, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0")


def stop(_signal, _frame):
    """End with a failure, so that the job is started again."""
    raise SystemExit(STOPPED)


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, stop)
    main()
