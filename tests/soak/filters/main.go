// Answers, for each line {pod, node, volumes}, which filters of the scheduler the node passes, with the scheduler's own code.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	schedulinghelpers "k8s.io/component-helpers/scheduling/corev1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"k8s.io/component-helpers/storage/volume"
	"k8s.io/klog/v2"
	defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

type question struct {
	Pod     corev1.Pod                `json:"pod"`
	Node    corev1.Node               `json:"node"`
	Volumes []corev1.PersistentVolume `json:"volumes"`
}

type answer struct {
	Affinity  bool `json:"affinity"`
	Taints    bool `json:"taints"`
	Resources bool `json:"resources"`
	Volumes   bool `json:"volumes"`
}

func main() {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		told, err := json.Marshal(judged(&asked))
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		out.Write(told)
		out.WriteByte('\n')
	}
}

func judged(asked *question) answer {
	// The API server does the same before the scheduler sees a pod.
	defaults.SetObjectDefaults_Pod(&asked.Pod)
	// An error of the affinity, such as a bound that is no integer, keeps the pod off the node.
	matches, err := nodeaffinity.GetRequiredNodeAffinity(&asked.Pod).Match(&asked.Node)
	_, untolerated := schedulinghelpers.FindMatchingUntoleratedTaint(
		klog.Background(), asked.Node.Spec.Taints, asked.Pod.Spec.Tolerations,
		func(taint *corev1.Taint) bool {
			return taint.Effect == corev1.TaintEffectNoSchedule || taint.Effect == corev1.TaintEffectNoExecute
		}, false)
	node := framework.NewNodeInfo()
	node.SetNode(&asked.Node)
	short := noderesources.Fits(&asked.Pod, node, nil, noderesources.ResourceRequestsOptions{EnablePodLevelResources: true})
	reached := true
	for index := range asked.Volumes {
		reached = reached && volume.CheckNodeAffinity(&asked.Volumes[index], asked.Node.Labels) == nil
	}
	return answer{
		Affinity:  err == nil && matches,
		Taints:    !untolerated,
		Resources: len(short) == 0,
		Volumes:   reached,
	}
}
