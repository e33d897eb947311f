// Package kuberay is never built. Its import keeps the module that carries the operator's chart among the
// requirements, so that go.sum pins the chart's contents and `go mod tidy` leaves both in place.
package kuberay

import _ "github.com/ray-project/kuberay/apiserver/pkg/swagger"
