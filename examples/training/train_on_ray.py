"""The same training with Ray Train: on workers, which are on spot; this program waits on the head, which is not.

Two losses, one way on. A lost worker is Ray's own business: it starts the workers again, up to WORKER_LOSSES times. A
lost cluster is the RayJob's, or its ladder's: the program starts anew, elsewhere, and finds what the last one left by
`storage_path` and `name`, which therefore belong to this job alone. Either way `get_checkpoint()` is where it goes on.
(`Trainer.restore` is what older programs have for this. It is deprecated, and told them not where to look.)
"""

import json
import os
import tempfile
from pathlib import Path
from urllib.parse import unquote, urlsplit

import ray.train
from fsspec.core import url_to_fs
from pyarrow.fs import FileInfo, FileType, FSSpecHandler, PyFileSystem
from ray.train.v2.api.data_parallel_trainer import DataParallelTrainer
from train import BEGINNING, STEPS, STEPS_BETWEEN_CHECKPOINTS, next_state

WORKERS = int(os.environ.get("WORKERS", "2"))
CPUS_PER_WORKER = float(os.environ.get("CPUS_PER_WORKER", "3"))
# Evictions come as often as they come: it is the ladder that counts them.
WORKER_LOSSES = -1

# What the clouds' file systems are called with; each takes the pod's own identity.
CREDENTIALS = {"s3": {}, "gs": {}, "abfss": {"anon": False}}


def train():
    """Train on one worker: all take the same steps, and the first keeps them."""
    state = restored(ray.train.get_checkpoint())
    is_first = ray.train.get_context().get_world_rank() == 0
    if is_first:
        print(f"goes on from step {state['step']}", flush=True)
    while state["step"] < STEPS:
        state = next_state(state)
        if state["step"] % STEPS_BETWEEN_CHECKPOINTS == 0 or state["step"] == STEPS:
            report(state, is_first)


def restored(checkpoint):
    """The state in a checkpoint; the beginning where there is none."""
    if checkpoint is None:
        return BEGINNING
    with checkpoint.as_directory() as folder:
        return json.loads((Path(folder) / "state.json").read_text())


def report(state, is_first):
    """Tell Ray of a state. Every worker does so at the same step; Ray counts a checkpoint once all of it is stored."""
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
    """An object store of which a pod may use its own prefix and nothing else."""

    def create_dir(self, path, recursive):
        """Nothing: an object store has no folders, and to look whether the bucket is there is not the pod's right."""

    def get_file_info(self, paths):
        """What lies at each path."""
        return [self._info(path) for path in paths]

    def _info(self, path):
        try:
            return super().get_file_info([path])[0]
        except OSError:
            # Asked for an object that is not there, as every folder is, S3 answers a pod 403 and not 404: so it lists.
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
    # By fsspec's file systems, which know workload identities that PyArrow's own do not (apache/arrow#45603).
    files, path = url_to_fs(uri, **CREDENTIALS[address.scheme])
    return {"storage_path": path, "storage_filesystem": PyFileSystem(OwnPrefix(files))}


def main():
    """Train as the environment says."""
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
