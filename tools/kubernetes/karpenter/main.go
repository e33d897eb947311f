// Command karpenter is Karpenter's own core over simulated machines, for pools of KWOKNodeClasses and of AWS's
// EC2NodeClasses alike.
//
// What a cloud does behind Karpenter's back is played here: machines join as nodes, an EC2NodeClass becomes ready and
// is held by its finalizer, and a pool's machines can be out of stock.
package main

import (
	"fmt"
	"os"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/cloudprovider/overlay"
	"sigs.k8s.io/karpenter/pkg/controllers"
	"sigs.k8s.io/karpenter/pkg/controllers/state"
	"sigs.k8s.io/karpenter/pkg/operator"
	"sigs.k8s.io/karpenter/pkg/operator/options"
)

func main() {
	ctx, op := operator.NewOperator()
	ec2.CapacityReservationsEnabled = options.FromContext(ctx).FeatureGates.ReservedCapacity
	kinds := installedNodeClasses(op.GetRESTMapper())
	if len(kinds) == 0 {
		exit(fmt.Errorf("the cluster knows neither EC2NodeClass nor KWOKNodeClass: their CRDs come first"))
	}
	sold, err := instanceTypes(ctx)
	exit(err)
	registrar, err := newRegistrar(op.GetClient())
	exit(err)

	machines := newSimulatedCloud(op.GetClient(), kwok.NewCloudProvider(ctx, registrar, sold), kinds)
	provider := overlay.Decorate(machines, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), provider)
	op.WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, provider, machines, cluster, op.InstanceTypeStore,
	)...)
	if machines.supports(&ec2.EC2NodeClass{}) {
		op.WithControllers(ctx, &nodeClassController{client: op.GetClient(), recorder: op.EventRecorder})
	}
	op.Start(ctx)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
