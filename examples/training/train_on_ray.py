"""The same training with Ray Train: workers run on spot; this program waits on the head, which runs on on-demand.

Ray restarts lost workers, up to WORKER_LOSSES times. After the loss of the cluster, the RayJob or its ladder starts the
program again elsewhere; it finds the checkpoints by `storage_path` and `name`, which must be unique to the job. In both
cases `get_checkpoint()` returns the state to resume from. (Older programs use `Trainer.restore`, which is deprecated.)
"""

import json
import os
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import ray.train
from fsspec.core import url_to_fs
from progress import Progress, progress_of
from pyarrow.fs import FileInfo, FileType, FSSpecHandler, PyFileSystem
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from train import BEGINNING, STEPS, STEPS_BETWEEN_CHECKPOINTS, next_state

WORKERS = int(os.environ.get("WORKERS", "2"))
CPUS_PER_WORKER = float(os.environ.get("CPUS_PER_WORKER", "3"))
# No limit: the ladder counts evictions.
WORKER_LOSSES = -1

# Arguments of the clouds' file systems; each uses the pod's identity.
CREDENTIALS = {"s3": {}, "gs": {}, "abfss": {"anon": False}}


def train():
    """Train on one worker. All workers take the same steps; the first one reports them."""
    state = restored(ray.train.get_checkpoint())
    is_first = ray.train.get_context().get_world_rank() == 0
    progress = progress_of(STEPS) if is_first else Progress(STEPS, None)
    if is_first:
        print(f"continues from step {state['step']}", flush=True)
    progress.report(state["step"], at_once=True)
    while state["step"] < STEPS:
        state = next_state(state)
        if state["step"] % STEPS_BETWEEN_CHECKPOINTS == 0 or state["step"] == STEPS:
            report(state, is_first)
        progress.report(state["step"], at_once=state["step"] == STEPS)


def restored(checkpoint):
    """The state in a checkpoint; without one the initial state."""
    if checkpoint is None:
        return BEGINNING
    with checkpoint.as_directory() as folder:
        return json.loads((Path(folder) / "state.json").read_text())


def report(state, is_first):
    """Report a state to Ray. Every worker reports the same step; Ray uses a checkpoint after it is stored completely."""
    with tempfile.TemporaryDirectory() as folder:
        if not is_first:
            ray.train.report({"step": state["step"]})
            return
        (Path(folder) / "state.json").write_text(json.dumps(state))
        ray.train.report(
            {"step": state["step"], "weights": state["weights"]},
            checkpoint=ray.train.Checkpoint.from_directory(folder),
        )


class OwnPrefix(FSSpecHandler):
    """An object store in which a pod may only use its own prefix."""

    def create_dir(self, path, recursive):
        """Do nothing: an object store has no folders, and the pod may not check the bucket."""

    def get_file_info(self, paths):
        """The kind of each path."""
        return [self._info(path) for path in paths]

    def _info(self, path):
        try:
            return super().get_file_info([path])[0]
        except OSError:
            # For a missing object, and so for every folder, S3 answers 403 instead of 404: list the path instead.
            return FileInfo(path, FileType.Directory if self._has_objects(path) else FileType.NotFound)

    def _has_objects(self, path):
        try:
            return bool(self.fs.find(path, maxdepth=1, withdirs=True))
        except OSError:
            return False


def storage(uri):
    """Where Ray keeps a run's checkpoints: `RunConfig`'s arguments for an address."""
    address = urlsplit(uri)
    if address.scheme == "file":
        return {"storage_path": unquote(address.path)}
    # fsspec's file systems support workload identities; PyArrow's do not (apache/arrow#45603).
    files, path = url_to_fs(uri, **CREDENTIALS[address.scheme])
    return {"storage_path": path, "storage_filesystem": PyFileSystem(OwnPrefix(files))}


def main():
    """Train as configured by the environment."""
    ray.init()
    trainer = DataParallelTrainer(
        train,
        scaling_config=ray.train.ScalingConfig(
            num_workers=WORKERS, resources_per_worker={"CPU": CPUS_PER_WORKER}
        ),
        run_config=ray.train.RunConfig(
            name=os.environ.get("RUN", "first"),
            failure_config=ray.train.FailureConfig(max_failures=WORKER_LOSSES),
            checkpoint_config=ray.train.CheckpointConfig(num_to_keep=3),
            **storage(os.environ["CHECKPOINT_URI"]),
        ),
    )
    metrics = trainer.fit().metrics
    if metrics:
        print(f"has trained {metrics['step']} steps: {metrics['weights']}", flush=True)


if __name__ == "__main__":
    main()
