"""An EKS training cluster in a VPC that this program owns."""

import pulumi
import pulumi_aws as aws

import pulumi_holdfast as holdfast

vpc = aws.ec2.Vpc("research", cidr_block="10.20.0.0/16", enable_dns_hostnames=True)
subnets = [
    aws.ec2.Subnet(
        zone, vpc_id=vpc.id, availability_zone=f"us-west-2{zone}", cidr_block=f"10.20.{block}.0/19"
    )
    for zone, block in {"a": 0, "b": 32}.items()
]
cluster = holdfast.EksTrainingCluster(
    "training",
    {
        "network": {"vpcId": vpc.id, "privateSubnetIds": [subnet.id for subnet in subnets]},
        "cluster": {"privateAccessCidrs": ["10.20.0.0/16"]},
        "protected": False,
        "pools": [
            {
                "name": "cpu",
                "capacity": "on-demand",
                "instanceTypes": ["m7i.xlarge", "m7a.xlarge"],
                "maxNodes": 20,
                "default": True,
            },
            {
                "name": "cpu-spot",
                "capacity": "spot",
                "families": ["c7i", "c6i", "m7i"],
                "sizes": ["xlarge"],
                "maxNodes": 8,
            },
        ],
        "namespaces": [
            {"name": "vision", "ladder": [{"pool": "cpu-spot", "procurementTimeout": "10m"}, {"pool": "cpu"}]}
        ],
    },
)
pulumi.export("kubeconfig", cluster.outputs.kubeconfig)
