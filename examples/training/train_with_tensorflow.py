"""The same training with TensorFlow: `tf.train.Checkpoint` holds weights and step, its manager keeps the newest few.

TensorFlow opens `gs://` by itself and `s3://` with the package tensorflow-io. The manager lists a checkpoint in its
index file after it is completely written, so an incomplete one is never used.
"""

import os
from urllib.parse import unquote, urlsplit

import tensorflow as tf
from progress import Progress, progress_of
from train import BEGINNING, STEPS, STEPS_BETWEEN_CHECKPOINTS, STOPPED, Notice, next_state


class Model(tf.Module):
    """Two weights, and how many steps they have been trained for."""

    def __init__(self):
        super().__init__()
        self.step = tf.Variable(BEGINNING["step"], dtype=tf.int64)
        self.weights = tf.Variable(BEGINNING["weights"], dtype=tf.float64)

    def train_step(self):
        """Train one step."""
        # As in `train.py`. Your own program uses a gradient tape and an optimizer here; store the optimizer in the
        # checkpoint, too.
        state = next_state({"step": int(self.step), "weights": [float(each) for each in self.weights]})
        self.weights.assign(state["weights"])
        self.step.assign(state["step"])
        return state["step"]


def train(folder, *, saves=True, notice=None):
    """Train from the latest checkpoint to the last step. Only one worker of a job has `saves`."""
    notice, model = notice or Notice(), Model()
    progress = progress_of(STEPS) if saves else Progress(STEPS, None)
    manager = tf.train.CheckpointManager(
        tf.train.Checkpoint(model=model), folder, max_to_keep=3, step_counter=model.step
    )
    manager.restore_or_initialize()
    step = int(model.step)
    print(f"continues from step {step}", flush=True)
    progress.report(step, at_once=True)
    while step < STEPS and not notice.is_heard:
        step = model.train_step()
        if saves and (step % STEPS_BETWEEN_CHECKPOINTS == 0 or step == STEPS):
            manager.save(checkpoint_number=step)
        progress.report(step, at_once=step == STEPS)
    if step < STEPS:
        if saves and step:
            manager.save(checkpoint_number=step)
            progress.report(step, at_once=True)
        print(f"stops after step {step}", flush=True)
        raise SystemExit(STOPPED)
    print(f"has trained {step} steps: {[float(each) for each in model.weights]}", flush=True)


def folder_of(uri, run):
    """A run's folder under an address, as TensorFlow opens it."""
    address = urlsplit(uri)
    return f"{unquote(address.path) if address.scheme == 'file' else uri.rstrip('/')}/{run}"


def main():
    """Train as the environment says."""
    notice = Notice()
    notice.listen()
    folder = folder_of(os.environ["CHECKPOINT_URI"], os.environ.get("RUN", "first"))
    train(folder, saves=os.environ.get("JOB_COMPLETION_INDEX", "0") == "0", notice=notice)


if __name__ == "__main__":
    main()
