package main

import (
	"github.com/awslabs/operatorpkg/object"
	"github.com/awslabs/operatorpkg/status"
	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/runtime/schema"
	karpv1 "sigs.k8s.io/karpenter/pkg/apis/v1"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// provider is what a cloud's own provider does with its kind of node class, as far as it is played here.
type provider interface {
	// nodeClass is an empty one of its kind.
	nodeClass() status.Object
	// finalizer holds a node class until its last machine is gone.
	finalizer() string
	// settle writes into a node class what its cloud has found out about it.
	settle(class status.Object)
	// image is what machines of a node class are started from.
	image(class status.Object) string
	// marks are the annotations on a machine that tell which version of its node class it was made of.
	marks(class status.Object) map[string]string
	// label adds to what is offered the labels that the nodes of it have besides Kubernetes' and Karpenter's own.
	label(offered *cloudprovider.Offering)
	// imageDrift is why a machine of another image is replaced.
	imageDrift() cloudprovider.DriftReason
}

func groupKind(class status.Object) schema.GroupKind { return object.GVK(class).GroupKind() }

// mark makes a machine one of a node class as it is now.
func mark(p provider, class status.Object, claim *karpv1.NodeClaim) {
	claim.Status.ImageID = p.image(class)
	claim.Annotations = lo.Assign(claim.Annotations, p.marks(class))
}

// drift is why a machine is none of its node class any more, "" while it is.
func drift(p provider, class status.Object, claim *karpv1.NodeClaim) cloudprovider.DriftReason {
	for key, value := range p.marks(class) {
		if claim.Annotations[key] != value {
			return "NodeClassDrift"
		}
	}
	if claim.Status.ImageID != p.image(class) {
		return p.imageDrift()
	}
	return ""
}

// settled makes these of a node class's conditions true, as far as its kind has them.
func settled(class status.Object, conditions ...string) {
	for _, condition := range conditions {
		if class.StatusConditions().IsDependentCondition(condition) {
			class.StatusConditions().SetTrue(condition)
		}
	}
}
