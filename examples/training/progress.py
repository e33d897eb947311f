"""Reports how far the training is, as an annotation of its own pod: `fallback.holdfast.dev/progress: 4200/10000`.

The fallback controller uses it to pace a job with a deadline, `kubectl holdfast drill` to measure what an interruption
costs. The pod needs its name (POD_NAME) and the right to patch pods, as in `report-progress.yaml`. Without them the
training runs and reports nothing.
"""

import json
import os
import ssl
import time
import urllib.request
from pathlib import Path

ANNOTATION = "fallback.holdfast.dev/progress"
# Where Kubernetes mounts the token of the pod's service account.
ACCOUNT = Path(os.environ.get("SERVICE_ACCOUNT_FOLDER", "/var/run/secrets/kubernetes.io/serviceaccount"))
SECONDS_BETWEEN_REPORTS = float(os.environ.get("SECONDS_BETWEEN_REPORTS", "10"))


class Progress:
    """Sends reports, at most one in SECONDS_BETWEEN_REPORTS unless one is due at once."""

    def __init__(self, steps, send):
        self._steps = steps
        self._send = send
        self._sent_at = None

    def report(self, step, *, at_once=False):
        """Report a step. The first failure is printed and ends all reports."""
        now = time.monotonic()
        is_due = self._sent_at is None or now - self._sent_at >= SECONDS_BETWEEN_REPORTS
        if self._send is None or not (is_due or at_once):
            return
        self._sent_at = now
        try:
            self._send(f"{step}/{self._steps}")
        except OSError as error:
            print(f"progress is not reported: {error}", flush=True)
            self._send = None


def progress_of(steps):
    """The reports of a training with so many steps; outside of a cluster nothing is sent."""
    is_known = "POD_NAME" in os.environ and "KUBERNETES_SERVICE_HOST" in os.environ
    return Progress(steps, annotate if is_known and (ACCOUNT / "token").is_file() else None)


def annotate(value):
    """Set the annotation of this pod."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    namespace = (ACCOUNT / "namespace").read_text().strip()
    pod = os.environ["POD_NAME"]
    request = urllib.request.Request(
        f"https://{host}:{port}/api/v1/namespaces/{namespace}/pods/{pod}",
        data=json.dumps({"metadata": {"annotations": {ANNOTATION: value}}}).encode(),
        method="PATCH",
        headers={
            "Authorization": f"Bearer {(ACCOUNT / 'token').read_text().strip()}",
            "Content-Type": "application/merge-patch+json",
        },
    )
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    # The training must not wait for an API server that does not answer.
    urllib.request.urlopen(request, timeout=5, context=trusted).close()  # noqa: S310 - always https
