"""Two EKS training clusters in one program, each in the region of its own provider."""

import holdfast_dev_holdfast as holdfast
import pulumi
import pulumi_aws as aws

MACHINES = ["m7i.xlarge", "m6i.xlarge"]
for region in ("us-east-2", "us-west-2"):
    holdfast.EksTrainingCluster(
        f"in-{region}",
        cluster={"private_access_cidrs": ["10.0.0.0/8"]},
        protected=False,
        pools=[
            {
                "name": "cpu",
                "capacity": "on-demand",
                "instance_types": MACHINES,
                "max_nodes": 20,
                "default": True,
            },
            {"name": "cpu-spot", "capacity": "spot", "instance_types": MACHINES, "max_nodes": 8},
        ],
        namespaces=[
            {
                "name": "vision",
                "ladder": [{"pool": "cpu-spot", "procurement_timeout": "10m"}, {"pool": "cpu"}],
            }
        ],
        opts=pulumi.ResourceOptions(providers=[aws.Provider(region, region=region)]),
    )
