package main

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	ec2 "github.com/aws/karpenter-provider-aws/pkg/apis/v1"
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

// simulatedCloud is kwok's provider, which knows one kind of node class, widened to AWS's.
type simulatedCloud struct {
	*kwok.CloudProvider
	client client.Client
	kinds  []status.Object
	stock  *stock
}

func newSimulatedCloud(c client.Client, machines *kwok.CloudProvider, kinds []status.Object) *simulatedCloud {
	return &simulatedCloud{CloudProvider: machines, client: c, kinds: kinds, stock: newStock()}
}

// installedNodeClasses are the kinds whose CRDs the cluster has: a watch on any other would never begin.
func installedNodeClasses(mapper meta.RESTMapper) []status.Object {
	return lo.Filter([]status.Object{&ec2.EC2NodeClass{}, &kwokv1.KWOKNodeClass{}}, func(o status.Object, _ int) bool {
		kind := object.GVK(o)
		_, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		return err == nil
	})
}

func (c *simulatedCloud) GetSupportedNodeClasses() []status.Object { return c.kinds }

func (c *simulatedCloud) supports(wanted status.Object) bool {
	return lo.ContainsBy(c.kinds, func(o status.Object) bool { return object.GVK(o) == object.GVK(wanted) })
}

// Create buys a machine. The answers are those of AWS's provider: a class that is gone, going or not ready sells none.
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
	if nodeClass, ok := class.(*ec2.EC2NodeClass); ok && err == nil {
		bought.Status.ImageID = image(nodeClass)
		bought.Annotations = lo.Assign(bought.Annotations, map[string]string{
			ec2.AnnotationEC2NodeClassHash:        nodeClass.Hash(nil),
			ec2.AnnotationEC2NodeClassHashVersion: ec2.EC2NodeClassHashVersion,
		})
	}
	return bought, err
}

// GetInstanceTypes are what is sold; offerings that were refused for want of stock are shown as such, so that the
// scheduler tries other pools, as it does for three minutes after AWS has refused one.
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
	nodeClass, ok := class.(*ec2.EC2NodeClass)
	switch {
	case !ok:
		return "", nil
	case claim.Annotations[ec2.AnnotationEC2NodeClassHash] != nodeClass.Hash(nil):
		return "NodeClassDrift", nil
	case claim.Status.ImageID != image(nodeClass):
		return "AMIDrift", nil
	}
	return "", nil
}

// nodeClass is the class a pool or machine names. One that is going counts as gone, as AWS's provider counts it.
func (c *simulatedCloud) nodeClass(ctx context.Context, ref *karpv1.NodeClassReference) (status.Object, error) {
	gone := apierrors.NewNotFound(schema.GroupResource{Group: ref.Group, Resource: ref.Kind}, ref.Name)
	kind, found := lo.Find(c.kinds, func(o status.Object) bool { return object.GVK(o).GroupKind() == ref.GroupKind() })
	if !found {
		return nil, gone
	}
	class := reflect.New(reflect.TypeOf(kind).Elem()).Interface().(status.Object)
	if err := c.client.Get(ctx, types.NamespacedName{Name: ref.Name}, class); err != nil {
		return nil, err
	}
	if !class.GetDeletionTimestamp().IsZero() {
		return nil, gone
	}
	return class, nil
}
