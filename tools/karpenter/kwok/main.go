// Command kwok is Karpenter's own core over simulated machines, for pools of KWOKNodeClasses, of AWS's EC2NodeClasses
// and of Azure's AKSNodeClasses alike.
//
// What a cloud does behind Karpenter's back is played here: machines join as nodes, a cloud's node class becomes ready
// and is held by its finalizer, and a pool's machines can be out of stock.
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
	version, err := op.KubernetesInterface.Discovery().ServerVersion()
	exit(err)
	sold, err := instanceTypes(ctx)
	exit(err)
	registrar, err := newRegistrar(op.GetClient())
	exit(err)

	played := []provider{aws{}, azure{version: version.GitVersion}}
	machines, err := newSimulatedCloud(op.GetClient(), kwok.NewCloudProvider(ctx, registrar, sold), played)
	exit(err)
	machines.sellReservedCapacity()
	machines.label(sold)
	decorated := overlay.Decorate(machines, op.GetClient(), op.InstanceTypeStore)
	cluster := state.NewCluster(op.Clock, op.GetClient(), decorated)
	op.WithControllers(ctx, controllers.NewControllers(
		ctx, op.Manager, op.Clock, op.GetClient(), op.EventRecorder, decorated, machines, cluster, op.InstanceTypeStore,
	)...)
	for _, player := range machines.players {
		op.WithControllers(ctx, &nodeClassController{provider: player, client: op.GetClient(), recorder: op.EventRecorder})
	}
	op.Start(ctx)
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
