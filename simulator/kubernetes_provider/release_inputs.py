"""The inputs of a Helm release: what may be set, what is filled in, and what helm is told of it."""

from collections.abc import Mapping
from pathlib import Path

from holdfast.simulator.errors import RehearsalError
from holdfast.simulator.kubernetes_provider.charts import Chart, ChartMirror
from holdfast.simulator.kubernetes_provider.helm import Plan
from holdfast.simulator.kubernetes_provider.inputs import Naming, autoname
from holdfast.simulator.pulumi.values import Properties, Unknown, Value, reveal

# Helm's own default is the same; the plugin writes it into the state.
_TIMEOUT_SECONDS = 300
_FLAGS = {
    "atomic": "atomic",
    "cleanupOnFail": "cleanup_on_fail",
    "createNamespace": "create_namespace",
    "dependencyUpdate": "dependency_update",
    "disableCRDHooks": "disable_upgrade_hooks",
    "disableOpenapiValidation": "disable_openapi_validation",
    "disableWebhooks": "disable_install_hooks",
    "forceUpdate": "force_update",
    "renderSubchartNotes": "render_subchart_notes",
    "resetValues": "reset_values",
    "reuseValues": "reuse_values",
    "skipAwait": "skip_await",
    "skipCrds": "skip_crds",
    "waitForJobs": "wait_for_jobs",
}
_KNOWN = {
    *_FLAGS,
    *(
        "chart",
        "description",
        "maxHistory",
        "name",
        "namespace",
        "repositoryOpts",
        "timeout",
        "values",
        "version",
    ),
}
_UNREHEARSED = {
    "devel": "name an exact version",
    "keyring": "charts come from a local mirror here, unsigned",
    "lint": "lint the chart in a check of its own",
    "postrender": "put the change into the chart or its values",
    "recreatePods": "Helm removed it: annotate the pod template with what should restart the pods",
    "replace": "name the release anew",
    "valueYamlFiles": "read the files in the program and pass them as `values`",
    "verify": "charts come from a local mirror here, unsigned",
}


def checked_release(
    news: Properties, olds: Properties, *, naming: Naming, namespace: str
) -> dict[str, Value]:
    """Return a release's inputs with name, namespace and timeout filled in.

    Raises RehearsalError for an input that cannot be rehearsed, with what to do instead.
    """
    given: dict[str, Value] = {name: value for name, value in news.items() if value is not None}
    for name, value in given.items():
        if name in _UNREHEARSED and value not in (False, "", [], ()):
            raise RehearsalError(f"{naming.logical_name}: {name} is not rehearsed; {_UNREHEARSED[name]}")
    inputs: dict[str, Value] = {name: value for name, value in given.items() if name in _KNOWN}
    if not inputs.get("chart"):
        raise RehearsalError(f"{naming.logical_name}: chart is not set; name a directory or an oci:// chart")
    old_name = olds.get("name")
    inputs["name"] = inputs.get("name") or old_name or _new_name(naming)
    inputs["namespace"] = inputs.get("namespace") or namespace
    if inputs.get("skipAwait") is not True:
        inputs.setdefault("timeout", _TIMEOUT_SECONDS)
    return inputs


def chart_of(inputs: Properties, mirror: ChartMirror) -> Chart | None:
    """Return the chart of a release, None while what names it is unknown. Raises RehearsalError."""
    repository = inputs.get("repositoryOpts")
    repo = repository.get("repo") if isinstance(repository, Mapping) else None
    named = (inputs.get("chart"), inputs.get("version"), repo)
    if any(isinstance(each, Unknown) for each in named):
        return None
    chart, version, repo = (reveal(each) for each in named)
    return mirror.find(
        str(chart), version=str(version) if version else None, repo=str(repo) if repo else None
    )


def plan_of(inputs: Properties, chart: Path, *, label: str | None = None) -> Plan:
    """Return what helm is told of a release whose inputs are all known, but for its values."""
    plain = {name: reveal(value) for name, value in inputs.items() if name in _KNOWN and name != "values"}
    timeout, history = plain.get("timeout"), plain.get("maxHistory")
    flags = {field: plain.get(name) is True for name, field in _FLAGS.items()}
    return Plan(
        name=str(plain["name"]),
        namespace=str(plain["namespace"]),
        chart=chart,
        timeout=float(timeout) if isinstance(timeout, int | float) and timeout > 0 else None,
        description=str(plain["description"]) if plain.get("description") else None,
        max_history=int(history) if isinstance(history, int | float) else None,
        label=label,
        **flags,
    )


def _new_name(naming: Naming) -> str:
    return naming.proposed or autoname(naming.logical_name, naming.seed)
