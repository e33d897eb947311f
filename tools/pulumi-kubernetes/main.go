// The Kubernetes plugin of the Pulumi engine, as upstream serves it. The build adds schema.json of the pinned module.
package main

import (
	_ "embed"

	"github.com/pulumi/pulumi-kubernetes/provider/v4/pkg/provider"
)

var version string

//go:embed schema.json
var schema []byte

func main() { provider.Serve("kubernetes", version, schema, nil) }
