"""What an earlier runner has left."""

import os
import signal
import subprocess
import sys

from pulumi_holdfast.rehearsal.operator_runner.training.surroundings import MARK, end_marked


def test_only_processes_of_the_same_runner_are_ended() -> None:
    sleep = [sys.executable, "-c", "input()"]

    def started(mark: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(sleep, env={**os.environ, MARK: mark}, stdin=subprocess.PIPE)

    with started("this-one/pod/") as own, started("another-one/pod/") as other:
        end_marked("this-one")
        assert own.wait(30) == -signal.SIGKILL
        assert other.poll() is None
        other.kill()
