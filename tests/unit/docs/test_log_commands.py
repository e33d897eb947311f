"""The guides' commands show that a job resumed: kubectl runs them on a pod whose log is long."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from pulumi_holdfast.ladder.json import Json
from tests.support.background import Silent, served
from tests.support.doc_pages import DocPage
from tests.support.training_program import TRAINING, Run

#: Far more lines than the ten that kubectl shows of each pod of a selector.
STEPS = 200
JOB = "train-on-spot"


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The log of the pod that resumed after its predecessor was evicted."""
    environment = {
        "CHECKPOINT_URI": f"file://{tmp_path_factory.mktemp('checkpoints')}",
        "SECONDS_PER_STEP": "0",
    }
    # A signal could arrive after the last step: an attempt that ends by itself leaves its checkpoint at a step that is known.
    for steps in (70, STEPS):
        run = Run(program=TRAINING / "train.py", environment={**environment, "STEPS": str(steps)})
        resumed = run.attempt()
    assert resumed.began
    return resumed.said


def test_the_last_line_of_the_example_says_where_it_went_on(log: str) -> None:
    first, last = log.splitlines()[0], log.splitlines()[-1]
    step = first.removeprefix("continues from step ")
    assert last == f"summary: this attempt continued from step {step} and ended after step {STEPS}"


@pytest.mark.parametrize("cloud", ["aws", "azure", "gcp"])
def test_the_command_that_shows_the_resume_prints_its_line(cloud: str, log: str, tmp_path: Path) -> None:
    page = DocPage.read(f"docs/getting-started-{cloud}.md").text
    (command,) = re.findall(r"^(kubectl logs .*\| grep .*?)(?:\s+#.*)?$", page, re.MULTILINE)
    assert "continues from step " in output_of(command, log, tmp_path)


def test_kubectl_hides_the_line_unless_the_whole_log_is_requested(log: str, tmp_path: Path) -> None:
    command = f"kubectl logs -n tabular -l jobset.sigs.k8s.io/jobset-name={JOB} --prefix"
    shown = output_of(command, log, tmp_path)
    assert "summary: this attempt continued from step " in shown
    assert "continues from step " not in shown


def output_of(command: str, log: str, folder: Path) -> str:
    """What a command prints in a cluster whose one pod has this log."""
    kubeconfig = folder / "kubeconfig"
    with cluster(log) as server:
        kubeconfig.write_text(json.dumps(kubeconfig_of(server)))
        environment = {
            "PATH": f"{Path(sys.executable).parent}:{os.defpath}",
            "KUBECONFIG": str(kubeconfig),
            "HOME": str(folder),
        }
        ended = subprocess.run(
            ["bash", "-c", command], env=environment, capture_output=True, text=True, check=False
        )
    assert not ended.stderr
    return ended.stdout


def kubeconfig_of(server: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "c"}}],
        "users": [{"name": "c", "user": {}}],
        "current-context": "c",
    }


POD: Json = {
    "metadata": {
        "name": f"{JOB}-workers-0-0-x",
        "namespace": "tabular",
        "labels": {"jobset.sigs.k8s.io/jobset-name": JOB},
    },
    "spec": {"containers": [{"name": "trainer", "image": "i"}]},
    "status": {"phase": "Running"},
}
DOCUMENTS: Json = {
    "/api": {"kind": "APIVersions", "versions": ["v1"]},
    "/apis": {"kind": "APIGroupList", "apiVersion": "v1", "groups": []},
    "/api/v1": {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {
                "name": "pods",
                "singularName": "pod",
                "namespaced": True,
                "kind": "Pod",
                "verbs": ["get", "list"],
            },
            {"name": "pods/log", "singularName": "", "namespaced": True, "kind": "Pod", "verbs": ["get"]},
        ],
    },
    "/api/v1/namespaces/tabular/pods": {"kind": "PodList", "apiVersion": "v1", "items": [POD]},
}


@contextmanager
def cluster(log: str) -> Generator[str]:
    """An API server with one pod, which serves its log as a kubelet does: from the end where a number of lines is asked."""

    class Handler(Silent, BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            if url.path.endswith("/log"):
                asked = parse_qs(url.query).get("tailLines")
                lines = log.splitlines(keepends=True)
                self.answer("".join(lines[-int(asked[0]) :] if asked else lines), "text/plain")
            elif url.path in DOCUMENTS:
                self.answer(json.dumps(DOCUMENTS[url.path]), "application/json")
            else:
                self.send_error(404)

        def answer(self, body: str, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

    with served(Handler) as address:
        yield address
