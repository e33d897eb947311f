"""A cluster that accepts jobs trusts the tokens of another one: two real API servers, and no stored credential.

What EKS is asked for is given to the API server as an AuthenticationConfiguration, which has the same fields. What Google Cloud and Azure are
asked for is given to services that exchange tokens as theirs do, and that tell the API server who a token is of.
"""

import asyncio
import base64
from collections.abc import Callable, Generator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
import yaml
from pulumi import Output

from pulumi_holdfast.aws.control_plane.access import TrustedIssuer, TrustedIssuerArgs
from pulumi_holdfast.controller.kube.access import from_kubeconfig
from pulumi_holdfast.controller.kube.client import (
    JOB,
    JOBSET,
    POD,
    RAYCLUSTER,
    RAYJOB,
    ApiError,
    Client,
    Kind,
    Unreachable,
)
from pulumi_holdfast.controller.kube.connection import Connection
from pulumi_holdfast.controller.kube.objects import annotations_of, uid_of
from pulumi_holdfast.kubernetes.fallback_controller.access import ControllerAccess
from pulumi_holdfast.kubernetes.fallback_controller.clusters import kubeconfig
from pulumi_holdfast.kubernetes.fallback_controller.transfer_policy import (
    COPIES_POLICY,
    TransferPolicy,
    account_from,
)
from pulumi_holdfast.kubernetes.kubernetes_object import role_ref
from pulumi_holdfast.kubernetes.training_namespace import TrainingNamespace, TrainingNamespaceArgs
from pulumi_holdfast.ladder.json import Json
from pulumi_holdfast.ladder.labels import CONTROLLER, CONTROLLER_NAMESPACE, COPY_OF, PERMIT
from pulumi_holdfast.ladder.ladder import Ladder, Tier
from pulumi_holdfast.rehearsal.control_plane.configuration import (
    KubeconfigCluster,
    read_cluster,
    render_kubeconfig,
)
from pulumi_holdfast.rehearsal.kubernetes import KubeClient
from tests.support.clusters.admission import is_refused, wait_until_enforced
from tests.support.clusters.control_plane import define, read_definition, running_control_plane
from tests.support.clusters.operators import OWN_CHARTS
from tests.support.clusters.reconciler import jobset, rayjob
from tests.support.clusters.token_services import TokenServices, serving
from tests.support.clusters.trusted_issuers import exported_exchange, services_for
from tests.support.fakes.pulumi_engine import record
from tests.support.json_objects import obj
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(600)]

HOME: Final = "us-east-1"
ISSUER: Final = "https://home.example.com"
AUDIENCE: Final = "https://there.example.com"
ACCEPTING, OTHER = "vision", "tabular"

_CRDS: Final = (
    "jobset-crds/files/jobset.x-k8s.io_jobsets.yaml",
    "kuberay-crds/files/ray.io_rayclusters.yaml",
    "kuberay-crds/files/ray.io_rayjobs.yaml",
)
_BUILDERS: Final = {"JobSet": jobset, "RayJob": rayjob}
_RBAC: Final = "rbac.authorization.k8s.io/v1"


@dataclass(frozen=True, kw_only=True)
class Clusters:
    """A client of home's administrator, one of the other cluster's, and that cluster's address."""

    home: KubeClient
    there: KubeClient
    address: KubeconfigCluster
    folder: Path
    services: TokenServices

    def token(self, account: str = CONTROLLER, audience: str | None = AUDIENCE) -> str:
        """A token of one of home's service accounts."""
        return self.home.service_account_token(CONTROLLER_NAMESPACE, account, 3600, audience=audience)

    def visitor(self, token: str) -> KubeClient:
        """A client of the other cluster that has a token."""
        path = self.folder / "visitor"
        path.write_text(render_kubeconfig("visitor", self.address, {"token": token}))
        return KubeClient.from_kubeconfig(path)

    def answer(self, token: str, request: Callable[[KubeClient], object]) -> int:
        """The status with which the other API server answers."""
        client = self.visitor(token)
        try:
            request(client)
        except ApiError as error:
            return error.status
        finally:
            client.close()
        return 200


@pytest.fixture(scope="module")
def clusters(tmp_path_factory: pytest.TempPathFactory) -> Generator[Clusters]:
    folder = tmp_path_factory.mktemp("trust")
    issues = (("service-account-issuer", ISSUER), ("external-hostname", "127.0.0.1"))
    with running_control_plane(folder / "home", "home", arguments=issues) as at_home:
        home = KubeClient.from_kubeconfig(at_home.kubeconfig("home"))
        _prepare_home(home)
        trusts = folder / "authentication.yaml"
        trusts.write_text(yaml.safe_dump(_authentication(read_cluster(at_home.kubeconfig("home")))))
        services = services_for(read_cluster(at_home.kubeconfig("home")), ISSUER)
        asks = folder / "webhook"
        arguments = (
            ("authentication-config", str(trusts)),
            ("authentication-token-webhook-config-file", str(asks)),
            ("authentication-token-webhook-version", "v1"),
            ("authentication-token-webhook-cache-ttl", "0s"),
        )
        with ExitStack() as stack:
            stack.enter_context(serving(services))
            asks.write_text(yaml.safe_dump(services.webhook()))
            elsewhere = stack.enter_context(
                running_control_plane(folder / "there", "there", arguments=arguments)
            )
            path = elsewhere.kubeconfig("there")
            there = KubeClient.from_kubeconfig(path)
            _prepare_there(there, services)
            found = Clusters(
                home=home, there=there, address=read_cluster(path), folder=folder, services=services
            )
            # It reads the issuer's keys in the background.
            wait_until(lambda: found.answer(found.token(), _who) == 200, "home's keys are known there")
            yield found
            there.close()
        home.close()


def _prepare_home(client: KubeClient) -> None:
    """The accounts, and the discovery of keys, which clouds serve to everyone."""
    _apply(client, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}})
    for name in (CONTROLLER, "another"):
        metadata: Json = {"name": name, "namespace": CONTROLLER_NAMESPACE}
        _apply(client, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
    everyone: Json = {
        "kind": "Group",
        "apiGroup": "rbac.authorization.k8s.io",
        "name": "system:unauthenticated",
    }
    role = role_ref("ClusterRole", "system:service-account-issuer-discovery")
    binding: Json = {"metadata": {"name": "keys"}, "roleRef": role, "subjects": [everyone]}
    _apply(client, {"apiVersion": _RBAC, "kind": "ClusterRoleBinding", **binding})


def _authentication(home: KubeconfigCluster) -> Json:
    """What the component asks EKS for, as Kubernetes' own configuration."""

    def build() -> None:
        args = TrustedIssuerArgs(
            cluster_name="there", cluster=HOME, issuer=ISSUER, audience=Output.from_input(AUDIENCE)
        )
        TrustedIssuer("issuer", args)

    asked = obj(record(build).one(":IdentityProviderConfig").inputs["oidc"])
    return {
        "apiVersion": "apiserver.config.k8s.io/v1beta1",
        "kind": "AuthenticationConfiguration",
        "jwt": [
            {
                "issuer": {
                    "url": asked["issuerUrl"],
                    "discoveryURL": f"{home.server}/.well-known/openid-configuration",
                    "certificateAuthority": home.authority.decode(),
                    "audiences": [asked["clientId"]],
                },
                "claimValidationRules": [
                    {"claim": claim, "requiredValue": required}
                    for claim, required in obj(asked["requiredClaims"]).items()
                ],
                "claimMappings": {
                    "username": {"claim": asked["usernameClaim"], "prefix": asked["usernamePrefix"]}
                },
            }
        ],
    }


def _prepare_there(client: KubeClient, services: TokenServices) -> None:
    """What a stack that accepts jobs creates, without what runs."""
    for crd in _CRDS:
        define(client, read_definition(OWN_CHARTS / crd))
    accounts = (account_from(HOME), services.google_email, services.entra_object_id)

    def build() -> None:
        ControllerAccess("access", accepts=True)
        TransferPolicy("transfers", accounts=accounts)
        for name in (ACCEPTING, OTHER):
            args = TrainingNamespaceArgs(
                namespace=name,
                ladder=Ladder(tiers=(Tier(pool="a100"),)),
                checkpoint_uri="s3://checkpoints",
                accepted=accounts if name == ACCEPTING else (),
                bounded=False,
            )
            TrainingNamespace(name, args)

    made = [each.inputs for each in record(build) if "apiVersion" in each.inputs]
    kinds = (
        "Namespace",
        "ClusterRole",
        "RoleBinding",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    )
    for kind in kinds:
        for each in made:
            if each["kind"] == kind and obj(each["metadata"]).get("namespace") in {None, ACCEPTING, OTHER}:
                _apply(client, each)
    wait_until_enforced(client, _refuses_running_copies)


def _apply(client: KubeClient, manifest: Json) -> None:
    client.apply(manifest, field_manager="test", force=True)


def _refuses_running_copies(client: KubeClient) -> bool:
    return is_refused(client, copy("planted", permit="Granted"), COPIES_POLICY)


def job(name: str, kind: str = "JobSet", *, within: str = ACCEPTING) -> Json:
    """A job of a namespace."""
    made = _BUILDERS[kind](name)
    return {**made, "metadata": {**obj(made["metadata"]), "namespace": within}}


def copy(name: str, kind: str = "JobSet", *, permit: str = "Waiting", within: str = ACCEPTING) -> Json:
    """A suspended copy of a job of home."""
    made = job(name, kind, within=within)
    annotations: Json = {**annotations_of(made), COPY_OF: "v1 x y 1", PERMIT: permit}
    return {
        **made,
        "metadata": {**obj(made["metadata"]), "annotations": annotations},
        "spec": {**obj(made["spec"]), "suspend": True},
    }


def _who(client: KubeClient) -> Json:
    review: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
    return obj(obj(client.create(review)["status"])["userInfo"])


@pytest.mark.parametrize(("kind", "child"), [(JOBSET, JOB), (RAYJOB, RAYCLUSTER)])
def test_the_controllers_own_client_writes_copies_with_a_token_that_is_exchanged(
    clusters: Clusters, kind: Kind, child: Kind
) -> None:
    folder = clusters.folder / f"controller-{kind.name}"
    folder.mkdir()
    authority = base64.b64encode(clusters.address.authority).decode()
    (folder / "kubeconfig").write_text(kubeconfig(clusters.address.server, authority, "token"))
    (folder / "token").write_text("expired")

    async def transfer() -> int:
        connection = Connection(lambda: from_kubeconfig(folder / "kubeconfig"))
        client = Client(connection)
        with pytest.raises(ApiError) as refused:
            await client.page(POD, namespace=ACCEPTING)
        # The kubelet replaces the file; the client does not start again.
        (folder / "token").write_text(clusters.token())
        created = await client.create(kind, ACCEPTING, copy("moved", kind.name))
        uid = uid_of(created)
        for permit, suspend in (("Granted", False), ("Recalled", True)):
            patch: Json = {"metadata": {"annotations": {PERMIT: permit}}, "spec": {"suspend": suspend}}
            await client.patch(kind, ACCEPTING, "moved", patch)
            assert obj(obj(await client.get(kind, ACCEPTING, "moved"))["spec"])["suspend"] is suspend, permit
        for listed in (POD, child, kind):
            await client.page(listed, namespace=ACCEPTING)
        await client.delete(kind, ACCEPTING, "moved", uid=uid)
        await connection.close()
        return refused.value.status

    assert asyncio.run(transfer()) == 401
    assert clusters.there.get(kind.api_version, kind.name, "moved", ACCEPTING) is None


def _refused_for(kind: str) -> dict[str, Callable[[KubeClient], object]]:
    """What is refused for a kind of job, of which `local` is a user's and `copied` is a copy."""
    api_version = str(job("x", kind)["apiVersion"])
    more: Json = {"spec": {"ttlSecondsAfterFinished": 60}}
    return {
        f"read {kind}s of the whole cluster": lambda client: client.list(api_version, kind),
        f"create a {kind} in another namespace": lambda client: client.create(copy("x", kind, within=OTHER)),
        f"create a {kind} that is no copy": lambda client: client.create(job("x", kind)),
        f"create a {kind} that may run": lambda client: client.create(copy("x", kind, permit="Granted")),
        f"delete a user's {kind}": lambda client: client.delete(
            api_version, kind, "local", namespace=ACCEPTING
        ),
        f"delete a {kind} that is not recalled": lambda client: client.delete(
            api_version, kind, "copied", namespace=ACCEPTING
        ),
        f"change more of a {kind} than its permit": lambda client: client.merge_patch(
            api_version, kind, "copied", more, namespace=ACCEPTING
        ),
        f"end a {kind}": lambda client: client.merge_patch(
            api_version, kind, "copied", {"status": {}}, namespace=ACCEPTING, subresource="status"
        ),
    }


REFUSED: Final[dict[str, Callable[[KubeClient], object]]] = {
    **_refused_for("JobSet"),
    **_refused_for("RayJob"),
    "create a RayCluster": lambda client: client.create(
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayCluster",
            "metadata": {"name": "x", "namespace": ACCEPTING},
            "spec": obj(job("x", "RayJob")["spec"])["rayClusterSpec"],
        }
    ),
    "read secrets": lambda client: client.list("v1", "Secret", namespace=ACCEPTING),
    "read pods of another namespace": lambda client: client.list("v1", "Pod", namespace=OTHER),
    "read nodes": lambda client: client.list("v1", "Node"),
    "create a pod": lambda client: client.create(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": "x", "namespace": ACCEPTING},
            "spec": {"containers": [{"name": "x", "image": "x"}]},
        }
    ),
    "get a token of the jobs": lambda client: client.service_account_token(ACCEPTING, "default", 3600),
    "give itself rights": lambda client: client.create(
        {
            "apiVersion": _RBAC,
            "kind": "RoleBinding",
            "metadata": {"name": "x", "namespace": ACCEPTING},
            "roleRef": role_ref("ClusterRole", "admin"),
            "subjects": [],
        }
    ),
}


def test_the_token_of_the_controller_allows_nothing_else(clusters: Clusters) -> None:
    for kind in _BUILDERS:
        _apply(clusters.there, job("local", kind))
        _apply(clusters.there, copy("copied", kind))
    token = clusters.token()
    visitor = clusters.visitor(token)
    assert _who(visitor)["username"] == account_from(HOME)
    assert _who(visitor)["groups"] == ["system:authenticated"]
    visitor.close()
    answers = {what: clusters.answer(token, request) for what, request in REFUSED.items()}
    assert answers == dict.fromkeys(REFUSED, 403)


def test_no_other_token_of_the_cluster_is_accepted(clusters: Clusters) -> None:
    tokens = {
        "of another account": clusters.token(account="another"),
        "for home's own API server": clusters.token(audience=None),
        "for a third cluster": clusters.token(audience="https://third.example.com"),
    }
    answers = {what: clusters.answer(token, _who) for what, token in tokens.items()}
    assert answers == dict.fromkeys(tokens, 401), "a third cluster that receives a token cannot use it here"


_CLOUDS: Final = ("google", "entra")


def _audience(cloud: str, services: TokenServices) -> str:
    return services.google.audience if cloud == "google" else services.entra.audience


def _controller(clusters: Clusters, cloud: str, folder: Path, token: str) -> Connection:
    """The controller's connection to the other cluster, whose cloud exchanges the token."""
    authority = base64.b64encode(clusters.address.authority).decode()
    exchange = exported_exchange(cloud, clusters.services)
    (folder / "token").write_text(token)
    path = folder / "kubeconfig"
    path.write_text(kubeconfig(clusters.address.server, authority, str(folder / "token"), exchange))
    return Connection(lambda: from_kubeconfig(path))


@pytest.mark.parametrize("cloud", _CLOUDS)
def test_the_controllers_own_client_writes_copies_with_the_token_of_a_cloud(
    clusters: Clusters, cloud: str, tmp_path: Path
) -> None:
    token = clusters.token(audience=_audience(cloud, clusters.services))
    name = f"moved-by-{cloud}"

    async def transfer() -> str:
        connection = _controller(clusters, cloud, tmp_path, token)
        review: Json = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview", "metadata": {}}
        known = await connection.request(
            "POST", "/apis/authentication.k8s.io/v1/selfsubjectreviews", body=review
        )
        client = Client(connection)
        created = await client.create(JOBSET, ACCEPTING, copy(name))
        for permit, suspend in (("Granted", False), ("Recalled", True)):
            patch: Json = {"metadata": {"annotations": {PERMIT: permit}}, "spec": {"suspend": suspend}}
            await client.patch(JOBSET, ACCEPTING, name, patch)
        await client.delete(JOBSET, ACCEPTING, name, uid=uid_of(created))
        for refused in (
            client.create(JOBSET, ACCEPTING, job(f"{name}-2")),
            client.create(JOBSET, OTHER, copy(f"{name}-2", within=OTHER)),
            client.page(POD, namespace=OTHER),
        ):
            with pytest.raises(ApiError) as error:
                await refused
            assert error.value.status == 403
        await connection.close()
        return str(obj(obj(known["status"])["userInfo"])["username"])

    services = clusters.services
    expected = {"google": services.google_email, "entra": services.entra_object_id}[cloud]
    assert asyncio.run(transfer()) == expected
    assert clusters.there.get(JOBSET.api_version, "JobSet", name, ACCEPTING) is None
    assert clusters.answer(token, _who) == 401


@pytest.mark.parametrize("cloud", _CLOUDS)
def test_no_other_token_of_the_cluster_is_exchanged(clusters: Clusters, cloud: str, tmp_path: Path) -> None:
    audience = _audience(cloud, clusters.services)
    other_cloud = _audience(next(each for each in _CLOUDS if each != cloud), clusters.services)
    own = clusters.token(audience=audience)
    tokens = {
        "of another account": (clusters.token(account="another", audience=audience), "subject"),
        "for home's own API server": (clusters.token(audience=None), "audience"),
        "for another cloud": (clusters.token(audience=other_cloud), "audience"),
        "with a changed signature": (f"{own[:-8]}AAAAAAAA", "signature"),
        "that is none": ("expired", "no token of this issuer"),
    }

    async def answers(token: str) -> str:
        connection = _controller(clusters, cloud, tmp_path, token)
        with pytest.raises(Unreachable) as refused:
            await Client(connection).page(POD, namespace=ACCEPTING)
        await connection.close()
        return str(refused.value)

    for what, (token, reason) in tokens.items():
        said = asyncio.run(answers(token))
        assert "cannot be exchanged" in said, (
            f"a token {what}: the cluster counts as one that does not answer"
        )
        assert reason in said, f"a token {what}: the log says why"
        assert token not in said
