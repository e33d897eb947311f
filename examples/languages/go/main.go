// Two EKS training clusters in one program, each in the region of its own provider.
package main

import (
	"github.com/holdfast-dev/pulumi-holdfast/sdk/go/holdfast"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
)

// What aws.NewProvider of pulumi-aws registers.
type awsProvider struct{ pulumi.ProviderResourceState }

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		machines := []string{"m7i.xlarge", "m6i.xlarge"}
		for _, region := range []string{"us-east-2", "us-west-2"} {
			aws := &awsProvider{}
			inputs := pulumi.Map{"region": pulumi.String(region)}
			if err := ctx.RegisterResource("pulumi:providers:aws", region, inputs, aws); err != nil {
				return err
			}
			_, err := holdfast.NewEksTrainingCluster(ctx, "in-"+region, &holdfast.EksTrainingClusterArgs{
				Cluster:   &holdfast.AwsClusterArgs{PrivateAccessCidrs: []string{"10.0.0.0/8"}},
				Protected: pulumi.BoolRef(false),
				Pools: []holdfast.AwsPoolArgs{
					{Name: "cpu", Capacity: "on-demand", InstanceTypes: machines, MaxNodes: 20, Default: pulumi.BoolRef(true)},
					{Name: "cpu-spot", Capacity: "spot", InstanceTypes: machines, MaxNodes: 8},
				},
				Namespaces: []holdfast.NamespaceArgs{{Name: "vision", Ladder: []holdfast.TierArgs{
					{Pool: "cpu-spot", ProcurementTimeout: pulumi.StringRef("10m")},
					{Pool: "cpu"},
				}}},
			}, pulumi.Providers(aws))
			if err != nil {
				return err
			}
		}
		return nil
	})
}
