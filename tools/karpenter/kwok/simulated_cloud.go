package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// simulatedCloud is kwok's provider, which knows one kind of node class, widened to those of the clouds.
type simulatedCloud struct {
	*kwok.CloudProvider
	client  client.Client
	kinds   []status.Object
	players []provider
	stock   *stock
}

func newSimulatedCloud(c client.Client, machines *kwok.CloudProvider, played []provider) (*simulatedCloud, error) {
	known := append(lo.Map(played, func(p provider, _ int) status.Object { return p.nodeClass() }), &kwokv1.KWOKNodeClass{})
	kinds := lo.Filter(known, func(o status.Object, _ int) bool { return installed(c.RESTMapper(), o) })
	if len(kinds) == 0 {
		return nil, errors.New("the cluster knows no kind of node class that is played here: their CRDs come first")
	}
	players := lo.Filter(played, func(p provider, _ int) bool { return installed(c.RESTMapper(), p.nodeClass()) })
	return &simulatedCloud{CloudProvider: machines, client: c, kinds: kinds, players: players, stock: newStock()}, nil
}

// installed tells whether the cluster has the CRD of a kind: a watch on any other would never begin.
func installed(mapper meta.RESTMapper, o status.Object) bool {
	kind := object.GVK(o)
	_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	return err == nil
}

func (c *simulatedCloud) GetSupportedNodeClasses() []status.Object { return c.kinds }

// playerOf is the cloud that a node class belongs to, false for a simulated one.
func (c *simulatedCloud) playerOf(class status.Object) (provider, bool) {
	return lo.Find(c.players, func(p provider) bool { return groupKind(p.nodeClass()) == groupKind(class) })
}

// label has all that is sold carry the labels of the clouds that are played.
func (c *simulatedCloud) label(sold []*cloudprovider.InstanceType) {
	for _, it := range sold {
		for _, offered := range it.Offerings {
			for _, player := range c.players {
				player.label(offered)
			}
		}
	}
}

// Create buys a machine. The answers are those of the clouds: a class that is gone, going or not ready sells none.
func (c *simulatedCloud) Create(ctx context.Context, claim *karpv1.NodeClaim) (*karpv1.NodeClaim, error) {
	class, err := c.nodeClass(ctx, claim.Spec.NodeClassRef)
	if apierrors.IsNotFound(err) {
		return nil, cloudprovider.NewInsufficientCapacityError(fmt.Errorf("resolving nodeclass, %w", err))
	}
	if err != nil {
		return nil, fmt.Errorf("resolving nodeclass, %w", err)
	}
	if !class.StatusConditions().Get(status.ConditionReady).IsTrue() {
		return nil, cloudprovider.NewNodeClassNotReadyError(fmt.Errorf("node class %s is not ready", class.GetName()))
	}
	if c.stock.sellsOut(class) {
		return nil, cloudprovider.NewInsufficientCapacityError(errors.New("with every offering out of stock"))
	}
	bought, err := c.CloudProvider.Create(withNodeClass(ctx, class), claim)
	if player, ok := c.playerOf(class); ok && err == nil {
		mark(player, class, bought)
	}
	return bought, err
}

// GetInstanceTypes are what is sold; offerings that were refused for want of stock are shown as such, so that the
// scheduler tries other pools, as it does for three minutes after a cloud has refused one.
func (c *simulatedCloud) GetInstanceTypes(ctx context.Context, pool *karpv1.NodePool) ([]*cloudprovider.InstanceType, error) {
	sold, err := c.CloudProvider.GetInstanceTypes(ctx, pool)
	if err != nil {
		return nil, err
	}
	class, err := c.nodeClass(ctx, pool.Spec.Template.Spec.NodeClassRef)
	if err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if !c.stock.knownToBeOut(class) {
		return sold, nil
	}
	return lo.Map(sold, func(it *cloudprovider.InstanceType, _ int) *cloudprovider.InstanceType { return unavailable(it) }), nil
}

// IsDrifted tells a machine whose class has changed since, or names another image.
func (c *simulatedCloud) IsDrifted(ctx context.Context, claim *karpv1.NodeClaim) (cloudprovider.DriftReason, error) {
	class, err := c.nodeClass(ctx, claim.Spec.NodeClassRef)
	if err != nil {
		return "", client.IgnoreNotFound(err)
	}
	player, ok := c.playerOf(class)
	if !ok {
		return "", nil
	}
	return drift(player, class, claim), nil
}

// nodeClass is the class a pool or machine names. One that is going counts as gone, as clouds' providers count it.
func (c *simulatedCloud) nodeClass(ctx context.Context, ref *karpv1.NodeClassReference) (status.Object, error) {
	gone := apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name)
	kind, found := lo.Find(c.kinds, func(o status.Object) bool { return groupKind(o) == ref.GroupKind() })
	if !found {
		return nil, gone
	}
	class := emptyOf(kind)
	if err := c.client.Get(ctx, types.NamespacedName{Name: ref.Name}, class); err != nil {
		return nil, err
	}
	if !class.GetDeletionTimestamp().IsZero() {
		return nil, gone
	}
	return class, nil
}
