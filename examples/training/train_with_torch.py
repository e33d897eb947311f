"""The same training on several machines with PyTorch: NCCL adds up the changes of all workers in every step.

`torchrun` starts a worker for each GPU. NCCL uses Elastic Fabric Adapters where the pod requests them and the image has
libfabric and NCCL's plugin for it; `NCCL_DEBUG=INFO` prints which network it chose. A spot notice reaches the workers of
one machine only. So each step also exchanges whether any worker has received SIGTERM: all stop after the same step.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as workers
from checkpoints import checkpoints_of
from train import Notice, next_state, train

#: What a larger model would exchange in a step.
PAYLOAD_MIB = int(os.environ.get("PAYLOAD_MIB", "256"))


def shared_step(notice, device):
    """Return the step that all workers take together."""
    payload = torch.zeros(PAYLOAD_MIB * 2**20 // 4, device=device)

    def step(state):
        # Every worker has the same data here, so that the average of their changes is the change of each. Your own
        # program gives each worker its share.
        own = next_state(state)
        changes = [new - old for new, old in zip(own["weights"], state["weights"], strict=True)]
        together = torch.tensor([*changes, float(notice.is_heard)], dtype=torch.float64, device=device)
        workers.all_reduce(together)
        workers.all_reduce(payload)
        *sums, stops = together.tolist()
        notice.is_heard = stops > 0
        average = [each / workers.get_world_size() for each in sums]
        weights = [old + change for old, change in zip(state["weights"], average, strict=True)]
        return {**own, "weights": weights}

    return step


def main():
    """Train as torchrun and the environment say."""
    notice = Notice()
    if "CHECKPOINT_URI" not in os.environ:
        sys.exit("CHECKPOINT_URI: not set; take it from the ConfigMap checkpoints, with envFrom")
    device = torch.device("cpu")
    if torch.cuda.is_available():
        device = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(device)
    workers.init_process_group("nccl" if device.type == "cuda" else "gloo")
    # Not before: while it waits for its peers, a worker has nothing to keep, and SIGTERM ends it at once.
    notice.listen()
    is_first = workers.get_rank() == 0
    if not is_first:
        # One worker reports for all.
        sys.stdout = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the process ends
    checkpoints = checkpoints_of(os.environ["CHECKPOINT_URI"], os.environ.get("RUN", "first"))
    try:
        train(checkpoints, saves=is_first, notice=notice, step=shared_step(notice, device))
    finally:
        workers.destroy_process_group()


if __name__ == "__main__":
    main()
