package main

import (
	"context"
	"os"

	"github.com/awslabs/operatorpkg/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	kwokv1 "sigs.k8s.io/karpenter/kwok/apis/v1alpha1"
)

// kubeletKubeconfig names the file with which machines join the cluster. Karpenter's own rights do not let it make
// nodes: on a cloud each kubelet registers itself.
const kubeletKubeconfig = "KUBELET_KUBECONFIG"

// registrar is the client that kwok's provider works with: nodes are made with a kubelet's rights, and the
// KWOKNodeClass it asks for is the class that the purchase is about, whatever its kind.
type registrar struct {
	client.Client
	kubelets client.Client
}

func newRegistrar(c client.Client) (client.Client, error) {
	path := os.Getenv(kubeletKubeconfig)
	if path == "" {
		return &registrar{Client: c, kubelets: c}, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, err
	}
	kubelets, err := client.New(config, client.Options{Scheme: c.Scheme(), Mapper: c.RESTMapper()})
	return &registrar{Client: c, kubelets: kubelets}, err
}

func (r *registrar) Create(ctx context.Context, obj client.Object, opts ...client.CreateOption) error {
	if _, ok := obj.(*corev1.Node); ok {
		return r.kubelets.Create(ctx, obj, opts...)
	}
	return r.Client.Create(ctx, obj, opts...)
}

func (r *registrar) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	asked, ok := obj.(*kwokv1.KWOKNodeClass)
	if !ok {
		return r.Client.Get(ctx, key, obj, opts...)
	}
	// Of any other kind it gets an empty one: machines that join at once.
	if class, ok := ctx.Value(nodeClassKey{}).(*kwokv1.KWOKNodeClass); ok {
		class.DeepCopyInto(asked)
	}
	return nil
}

type nodeClassKey struct{}

func withNodeClass(ctx context.Context, class status.Object) context.Context {
	return context.WithValue(ctx, nodeClassKey{}, class)
}
