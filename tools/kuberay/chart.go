// Package kuberay keeps the module that carries the chart among the requirements.
package kuberay

import _ "github.com/ray-project/kuberay/apiserver/pkg/swagger"
