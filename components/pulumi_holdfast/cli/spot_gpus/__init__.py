"""A stack for GPUs on spot from one command: `holdfast up aws --spot-gpus a100`."""
