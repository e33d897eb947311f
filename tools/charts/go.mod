// Modules that are fetched for a chart which lies in them. Nothing here is compiled, so `go mod tidy` would empty the
// file: a version is changed with `go get MODULE@VERSION`.
module holdfast.dev/tools/charts

go 1.26.6

require (
	github.com/NVIDIA/k8s-device-plugin v0.19.0
	github.com/aws/eks-charts v0.0.243-0.20260821194545-743f98a89b5b
)
