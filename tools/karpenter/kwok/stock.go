package main

import (
	"sync"

	"github.com/samber/lo"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
)

// stockAnnotation on a node class says how many machines it can still sell: "0" is none, anything else enough.
const stockAnnotation = "rehearsal.holdfast.dev/stock"

// stock remembers which node classes have refused to sell. As in a cloud, one learns of it only by trying to buy.
type stock struct {
	mutex   sync.Mutex
	refused sets.Set[types.UID]
}

func newStock() *stock { return &stock{refused: sets.New[types.UID]()} }

// sellsOut tells whether a purchase is refused, and remembers the refusal.
func (s *stock) sellsOut(class client.Object) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if class.GetAnnotations()[stockAnnotation] != "0" {
		s.refused.Delete(class.GetUID())
		return false
	}
	s.refused.Insert(class.GetUID())
	return true
}

// knownToBeOut tells whether a purchase was refused, and would be again.
func (s *stock) knownToBeOut(class client.Object) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.refused.Has(class.GetUID()) && class.GetAnnotations()[stockAnnotation] == "0"
}

// unavailable is the same instance type with nothing of it on offer.
func unavailable(it *cloudprovider.InstanceType) *cloudprovider.InstanceType {
	return &cloudprovider.InstanceType{
		Name:         it.Name,
		Requirements: it.Requirements,
		Capacity:     it.Capacity,
		Overhead:     it.Overhead,
		Offerings: lo.Map(it.Offerings, func(o *cloudprovider.Offering, _ int) *cloudprovider.Offering {
			out := *o
			out.Available = false
			return &out
		}),
	}
}
