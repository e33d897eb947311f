"""Invalid documents of AWS stacks, each with one mistake and the problem that it causes."""

from pulumi_holdfast.config import versions
from pulumi_holdfast.ladder.json import JsonValue
from tests.support.builders.configurations import Document
from tests.support.invalid_configs.everywhere import INVALID_EVERYWHERE
from tests.support.invalid_configs.mistakes import (
    ENDED,
    HOME,
    INVALID_VOLUMES,
    Mistake,
    changed,
    missing,
    reserved,
    volume,
    wrong,
)

SUBNETS: list[JsonValue] = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]


ML = "arn:aws:iam::123456789012:role/ml"


def vpc(field: str, fix: str, *, vpcId: str = "vpc-0123456789abcdef0", **given: JsonValue) -> Mistake:  # noqa: N803 - the field's name
    return wrong(field, {"vpcId": vpcId, **given}, fix, at=".network")


BLOCK: Document = {"id": "cr-0123456789abcdef0"}
P5: Document = {"instanceTypes": ["p5.48xlarge"], "zones": ["us-west-2a"]}


def reserved_pool(field: str, fix: str, reservation: Document | None = None, **others: JsonValue) -> Mistake:
    """A pool of one reserved machine type in one zone, with a mistake."""
    source = {**P5, "reservation": {**BLOCK, **(reservation or {})}}
    return reserved(".pools[2]", field, fix, source, **others)


SECRET = "arn:aws:secretsmanager:us-west-2:123456789012:secret:ecr-pullthroughcache/docker-hub-AbCdEf"


def cache(field: str, fix: str, *before: JsonValue, **given: JsonValue) -> Mistake:
    """A pull through cache of Docker Hub with a mistake, after others."""
    entry = {"prefix": "docker-hub", "upstream": "registry-1.docker.io", "credentialArn": SECRET, **given}
    caches = [*before, {name: value for name, value in entry.items() if value is not None}]
    return wrong(f".pullThroughCache[{len(before)}].{field}", caches, fix, at=".pullThroughCache")


def lustre(field: str, fix: str, **given: JsonValue) -> Mistake:
    """A parallel volume with a mistake."""
    return volume(field, fix, **{"kind": "parallel", "zone": "us-west-2a", "sizeGiB": 1200, **given})


INVALID_CONFIGS: dict[str, Mistake] = {
    **INVALID_EVERYWHERE,
    "the size of a pool in other words": wrong(".pools[0].max_size", 20, "Write maxNodes.", without=[".pools[0].maxNodes"]),
    "spot as a field": wrong(".pools[2].spot", True, "Write capacity: spot", without=[".pools[2].capacity"]),
    "pools in other words": (lambda document: document.update(nodePools=document.pop("pools")), ".nodePools", 'Write "pools".'),
    "a timeout by half its name": wrong(".namespaces[0].ladder[0].timeout", "10m", 'Write "procurementTimeout".'),
    "a disk in other words": wrong(".pools[0].diskSize", "500Gi", "Write diskGiB."),
    "the name of a GPU": (changed(".pools[2]", instanceTypes=["h100"]), ".pools[2].instanceTypes[0]", 'Write "p5.'),
    "a budget of nothing": wrong(".budget", 0, "for example, `budget: 400`"),
    "a reserved pool without a reservation": reserved(".pools[2]", "", "Add `reservation: {id: cr-0123456789abcdef0}`.", P5),
    "a reservation on a spot pool": (changed(".pools[2]", reservation=BLOCK), ".pools[2].reservation", "Write capacity: reserved, or remove reservation."),
    "a reservation that has ended": reserved_pool("reservation.ends", "the reservation that follows it", ENDED),
    "a reservation of 40 minutes": reserved_pool("reservation.ends", "Write both times", {"begins": "2126-01-01T11:30:00Z", "ends": "2126-01-01T12:10:00Z"}),
    "a reservation with a local time": reserved_pool("reservation.ends", "Write a date and a time in UTC", {"ends": "2126-01-01 11:30"}),
    "the ARN of a reservation": reserved_pool("reservation.id", "aws ec2 describe-capacity-reservations", {"id": "arn:aws:ec2:us-west-2:123456789012:capacity-reservation/cr-0123456789abcdef0"}),
    "a reservation of two instance types": reserved_pool("instanceTypes", "the type of the reservation", instanceTypes=["p5.48xlarge", "p5e.48xlarge"]),
    "a reservation in all zones": reserved_pool("zones", "the zone of the reservation", zones=["us-west-2a", "us-west-2b"]),
    "a reservation in the stack's own placement group": reserved_pool("compactPlacement", "Leave it out.", compactPlacement=True),
    "an account without quotes": wrong(".account", 123456789012, 'Put it in quotes: "123456789012".'),
    "an account that lost its leading zeros": wrong(".account", 12345678, "get-caller-identity"),
    "an account of eleven digits": wrong(".account", "12345678901", "get-caller-identity"),
    "an account with hyphens": wrong(".account", "1234-5678-9012", "get-caller-identity"),
    "a region in the document": wrong(".region", "us-east-1", "aws:region"),
    "resourcePools of Determined": wrong(".resourcePools", [], "Write pools"),
    # the cluster
    "a version without MutatingAdmissionPolicy": wrong(".cluster.version", "1.35", "{key: karpenter.sh/capacity-type, operator: Equal,"),
    "a version without pinned add-ons": wrong(".cluster.version", "1.99", f'Write "{versions.KUBERNETES}".'),
    "a version with a patch": wrong(".cluster.version", f"{versions.KUBERNETES}.3", f'Write "{versions.KUBERNETES}".'),
    "an endpoint open to the internet": wrong(".cluster.publicAccessCidrs", ["0.0.0.0/0"], "add `allowPublicAccessFromAnywhere: true`"),
    "an endpoint open to the internet in two halves": wrong(".cluster.publicAccessCidrs", ["0.0.0.0/1", "128.0.0.0/1"], "add `allowPublicAccessFromAnywhere: true`"),
    "no public and no private access": missing(".cluster.publicAccessCidrs", "privateAccessCidrs with the network"),
    "allowPublicAccessFromAnywhere without the block": wrong(".cluster.allowPublicAccessFromAnywhere", True, "Leave it out."),
    "a private block for a public endpoint": wrong(".cluster.publicAccessCidrs[0]", ["10.0.0.0/8"], "use the private endpoint"),
    "a block with host bits": wrong(".cluster.publicAccessCidrs[0]", ["203.0.113.7/24"], 'Write "203.0.113.0/24".'),
    "an address without a prefix length": wrong(".cluster.publicAccessCidrs[0]", ["203.0.113.7"], 'Write "203.0.113.7/32".'),
    "an invalid address": wrong(".cluster.publicAccessCidrs[0]", ["office"], "Write an IPv4 address"),
    "an administrator that is not an ARN": wrong(".cluster.admins[0]", ["platform"], "arn:aws:iam::123456789012:role/platform"),
    "an administrator of eleven digits": wrong(".cluster.admins[0]", ["arn:aws:iam::12345678901:role/platform"], "arn:aws:iam::123456789012:role/platform"),
    "a session as an administrator": wrong(".cluster.admins[0]", ["arn:aws:sts::123456789012:assumed-role/platform/me"], "arn:aws:iam::123456789012:role/platform."),
    "an account as an administrator": wrong(".cluster.admins[0]", ["arn:aws:iam::123456789012:root"], "Write a role or a user"),
    "an administrator of another partition": wrong(".cluster.admins[0]", ["arn:aws-cn:iam::123456789012:role/platform"], "arn:aws:iam::123456789012:role/platform"),
    "an administrator twice": wrong(".cluster.admins[1]", ["arn:aws:iam::123456789012:role/platform"] * 2, "Remove one"),
    "a principal in admins and in access": (lambda d: (changed(".cluster", admins=[ML])(d), changed("", access=[{"principal": ML, "namespaces": ["vision"]}])(d)), ".access[0].principal", "Remove one"),
    "access to a namespace that does not exist": wrong(".access[0].namespaces[0]", [{"principal": ML, "namespaces": ["visoin"]}], 'Write "vision".', at=".access"),
    "access without a namespace": wrong(".access[0].namespaces", [{"principal": ML, "namespaces": []}], "`namespaces: ", at=".access"),
    "access with an unknown role": wrong(".access[0].role", [{"principal": ML, "namespaces": ["vision"], "role": "edit"}], "`role: submit`", at=".access"),
    "access under cluster": wrong(".cluster.access", [], "beside cluster"),
    "a path without slashes": wrong(".iam.path", "holdfast", 'Write "/holdfast/".'),
    "a boundary that is not an ARN": wrong(".iam.permissionsBoundary", "boundary", "policy/boundary"),
    "a retention that CloudWatch rejects": wrong(".cluster.logs.retainDays", 100, "Write 90."),
    "an unknown log type": wrong(".cluster.logs.types[0]", ["audits"], 'Write "audit".'),
    "an unknown upgrade policy": wrong(".cluster.upgradePolicy", "STANDARD", 'Write "standard".'),
    "a key alias for secrets": wrong(".cluster.secretsKey", "alias/eks", "aws kms describe-key"),
    "a key of another region for secrets": wrong(".cluster.secretsKey", "arn:aws:kms:eu-west-1:123456789012:key/01234567-89ab-cdef-0123-456789abcdef", "this region"),
    "dropKey with a key in use": wrong(".checkpoints.dropKey", True, "Leave it out."),
    "a single system node": wrong(".cluster.systemNodes.count", 1, "`count: 2`"),
    "system nodes with GPUs": wrong(".cluster.systemNodes.instanceTypes[0]", ["g5.xlarge"], "m7i.large"),
    "system nodes too small for the operators": wrong(".cluster.systemNodes.instanceTypes[1]", ["m7i.large", "t3.small"], "m7i.large"),
    "system nodes of two architectures": wrong(".cluster.systemNodes.instanceTypes", ["m7i.large", "m7g.large"], "Remove those of one architecture"),
    "a system node with a typo": wrong(".cluster.systemNodes.instanceTypes[0]", ["m7i.lrage"], 'Write "m7i.large".'),
    "a public service range": wrong(".cluster.serviceCidr", "203.0.113.0/24", "172.20.0.0/16"),
    # pull through caches
    "a cache of Docker Hub by another name": cache("upstream", 'Write "registry-1.docker.io".', upstream="docker.io"),
    "a cache of a registry that ECR does not cache": cache("upstream", "copy the images", upstream="nvcr.io"),
    "a cache of a URL": cache("upstream", 'Write "ghcr.io".', upstream="https://ghcr.io/"),
    "a cache with a capital letter": cache("prefix", "Write, for example, docker-hub", prefix="Docker"),
    "a cache of the whole registry": cache("prefix", "Write, for example, docker-hub", prefix="ROOT"),
    "a cache of Docker Hub without credentials": cache("credentialArn", "secretsmanager create-secret", credentialArn=None),
    "a cache of Quay with credentials": cache("credentialArn", "Leave it out.", upstream="quay.io"),
    "credentials under another name": cache("credentialArn", "--name ecr-pullthroughcache/NAME", credentialArn=SECRET.replace("ecr-pullthroughcache", "registries")),
    "credentials of another region": cache("credentialArn", "Create the secret there", credentialArn=SECRET.replace("us-west-2", "us-east-1")),
    "a prefix of two caches": cache("prefix", "Write another prefix", {"prefix": "docker-hub", "upstream": "quay.io"}),
    "a cache in an isolated network": (lambda d: (changed(".network", isolated=True)(d), changed(".mirror", images="registry.example.com")(d), changed("", pullThroughCache=[{"prefix": "quay", "upstream": "quay.io"}])(d)), ".pullThroughCache", "mirror.images"),
    # the network
    "a network that overlaps the service range": wrong(".network.cidr", "172.20.0.0/16", "Write, for example,"),
    "a network with fewer addresses than nodes": (lambda d: (changed(".network", cidr="10.40.0.0/22")(d), changed(".pools[0]", maxNodes=900)(d)), ".network.cidr", "Write a larger block, or smaller maxNodes."),
    "a network that is too small": wrong(".network.cidr", "10.40.0.0/26", "/22"),
    "a zone of another region": wrong(".network.zones[1]", ["us-west-2a", "us-east-1b"], 'Write "us-west-2b"'),
    "a Local Zone": wrong(".network.zones", ["us-west-2a", "us-west-2-lax-1a"], "such as us-east-1a"),
    "a zone letter that does not exist": wrong(".network.zones[1]", ["us-west-2a", "us-west-2z"], "change aws:region"),
    "a single zone": wrong(".network.zones", ["us-west-2a"], "EKS needs two"),
    "a zone twice": wrong(".network.zones", ["us-west-2a", "us-west-2a"], "each once"),
    "seven zones": wrong(".network.zones", 7, "`zones: 3`"),
    "zones that are neither a number nor a list": wrong(".network.zones", "all", "`zones: 3`"),
    "a mistyped NAT": wrong(".network.nat", "per_zone", 'Write "per-zone".'),
    "nat in an isolated network": (lambda d: (changed(".network", isolated=True, nat="single")(d), changed(".mirror", images="registry.example.com")(d)), ".network.nat", "Leave out nat"),
    "an isolated network without an image mirror": wrong(".network.isolated", True, "mirror: {images: …}"),
    "a VPC without subnets": vpc(".network.privateSubnetIds", "Add `privateSubnetIds: "),
    "a VPC with zones": vpc(".network.zones", "Leave it out", privateSubnetIds=SUBNETS, zones=3),
    "a VPC name instead of an id": vpc(".network.vpcId", "aws ec2 describe-vpcs", vpcId="main", privateSubnetIds=SUBNETS),
    "a subnet twice": vpc(".network.privateSubnetIds[1]", "Remove one", privateSubnetIds=SUBNETS[:1] * 2),
    "a network that is not a mapping": wrong(".network", "default", "`network: {cidr: "),
    "a system node of a family that does not exist": wrong(".cluster.systemNodes.instanceTypes[0]", ["m9z.large"], 'Write "m'),
    "a version that YAML reads as a number": wrong(".cluster.version", 1.40, 'Put it in quotes: "1.40".'),
    "a version by another name": wrong(".cluster.kubernetesVersion", versions.KUBERNETES, 'Write "version".'),
    "the region of the provider inside": wrong(".aws:region", "us-west-2", "Move it out of holdfast:platform."),
    # pools
    "the most nodes by another name": wrong(".pools[1].max_size", 3, "Write maxNodes."),
    "the requirements of a NodePool": wrong(".pools[1].requirements", [], "the field with the machine types"),
    "the limits of a NodePool": wrong(".pools[1].limits", {}, "Write maxNodes."),
    "an accelerator in a list": wrong(".namespaces[0].shapes[0].accelerator", [{"name": "a", "gpus": 8, "accelerator": ["h100"]}], 'Write "h100", without the brackets.', at=".namespaces[0].shapes"),
    "a namespace without a ladder": missing(".namespaces[0].ladder", "Add `ladder: [{pool: NAME}]`."),
    "an instance type with a typo": wrong(".pools[0].instanceTypes[0]", ["m7i.xlrage"], 'Write "m7i.xlarge".'),
    "an instance type of another cloud": wrong(".pools[0].instanceTypes[0]", ["Standard_ND96asr_v4"], "aws ec2 describe-instance-type-offerings --region us-west-2"),
    "an instance type that the region does not have": wrong(".pools[0].instanceTypes[1]", ["m7i.xlarge", "hpc6a.48xlarge"], "change aws:region"),
    "an instance type that is never on spot": wrong(".pools[1].instanceTypes[1]", ["c7i.xlarge", "t2.nano"], "or write capacity: on-demand", without=[".pools[1].families", ".pools[1].sizes"]),
    "an instance type twice": wrong(".pools[0].instanceTypes[1]", ["m7i.xlarge", "m7i.xlarge"], "Remove one"),
    "machines with and without GPUs": wrong(".pools[0].instanceTypes", ["m7i.xlarge", "g6.xlarge"], "two pools", default=False),
    "no machines": missing(".pools[0].instanceTypes", "`families: "),
    "families without sizes": missing(".pools[1].sizes", "Add `sizes: "),
    "sizes without families": missing(".pools[1].families", "Add `families: "),
    "instanceTypes beside families": wrong(".pools[1].families", ["c7i.xlarge"], "Remove one of the two.", at=".pools[1].instanceTypes"),
    "a family with a typo": wrong(".pools[1].families[1]", ["c7i", "c6j"], 'Write "c6'),
    "a size that the families do not have": wrong(".pools[1].sizes[1]", ["xlarge", "112xlarge"], "remove it"),
    "machines of two architectures": wrong(".pools[0]", ["m7i.xlarge", "m7g.xlarge"], "two pools", at=".pools[0].instanceTypes"),
    "efa on machines without it": wrong(".pools[0].efa", True, "or efa"),
    "a placement group in all zones": wrong(".pools[2].compactPlacement", True, "`zones: [us-west-2a]`"),
    "a pool in a zone outside the region": wrong(".pools[2].zones[0]", ["us-east-1a"], 'Write "us-west-2a"'),
    "a pool in a zone outside the network": wrong(".pools[2].zones[0]", ["us-west-2d"], "add it to network.zones"),
    "a price cap as in Determined": wrong(".pools[2].spot_max_price", "2.50", "Karpenter has no field that holds a price cap"),
    "a price cap": wrong(".pools[2].spotMaxPrice", "2.50", "Karpenter has no field that holds a price cap"),
    "a volume that is too small": wrong(".pools[2].diskGiB", 8, "`diskGiB: 100`"),
    "a field with a typo": wrong(".pools[2].diskGib", 200, 'Write "diskGiB".'),
    # the rest
    "an existing bucket": wrong(".checkpoints.bucket", "mine", "Leave it out"),
    "retainDays of zero": wrong(".checkpoints.retainDays", 0, "`retainDays: 30`"),
    "an image mirror with a scheme": wrong(".mirror.images", "https://registry.example.com/mirror/", 'Write "registry.example.com/mirror".'),
    "an image mirror without a host": wrong(".mirror.images", "mirror", "registry's host"),
    # jobs of other clusters
    "jobs for a namespace with a typo": wrong(".acceptsFrom[0].namespaces[0]", [{**HOME, "namespaces": ["vison"]}], 'Write "vision".', at=".acceptsFrom"),
    "two clusters whose jobs are accepted": wrong(".acceptsFrom", [HOME, {**HOME, "name": "us-west-1", "issuer": f"{HOME['issuer']}0", "namespaces": ["tabular"]}], "`acceptsFrom: [{name: us-east-1"),
    "an issuer without https": wrong(".acceptsFrom[0].issuer", [{**HOME, "issuer": "oidc.eks.us-east-1.amazonaws.com/id/0"}], "Write the output issuer", at=".acceptsFrom"),
    "a stack for an issuer": wrong(".acceptsFrom[0].stack", [{**HOME, "stack": "acme/holdfast/aws-dev"}], "`pulumi stack output issuer`", at=".acceptsFrom"),
    # volumes
    **INVALID_VOLUMES,
    "Lustre without a size": lustre("sizeGiB", "the smallest", sizeGiB=None),
    "Lustre without a zone": lustre("zone", "Write ", zone=None),
    "Lustre of a size that there is not": lustre("sizeGiB", "Write 1200", sizeGiB=1300),
    "Lustre in a zone of another region": lustre("zone", "Write us-west-2a.", zone="us-east-1a"),
    "Lustre that imports no bucket": lustre("imports", "Write one of them", imports="datasets"),
    "Lustre in a subnet of the stack's network": lustre("subnetId", "Leave it out.", subnetId=SUBNETS[0]),
    "Lustre in an existing network without its subnet": (lambda d: (lustre("zone", "")[0](d), vpc("", "", privateSubnetIds=SUBNETS)[0](d)), ".storage[0].subnetId", "Add it."),
    "an elastic file system with a size": volume("sizeGiB", "Leave it out.", kind="shared", sizeGiB=1200),
    "a bucket by its address": volume("existing", "Write the name alone", existing="s3://datasets"),
}  # fmt: skip
