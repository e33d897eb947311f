package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	kwok "sigs.k8s.io/karpenter/kwok/cloudprovider"
	kwokoptions "sigs.k8s.io/karpenter/kwok/options"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/scheduling"
)

// instanceTypes is what is sold: kwok's reading of the file, with the labels that it passes over.
func instanceTypes(ctx context.Context) ([]*cloudprovider.InstanceType, error) {
	path := kwokoptions.FromContext(ctx).InstanceTypesFilePath
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("INSTANCE_TYPES_FILE_PATH does not name what is sold, %w", err)
	}
	var labelled []struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	}
	if err := json.Unmarshal(text, &labelled); err != nil {
		return nil, fmt.Errorf("reading %s, %w", path, err)
	}
	sold, err := kwok.ConstructInstanceTypes(ctx)
	if err != nil {
		return nil, err
	}
	for i, it := range sold { // in the order of the file
		for key, value := range labelled[i].Labels {
			it.Requirements.Add(scheduling.NewRequirement(key, corev1.NodeSelectorOpIn, value))
		}
	}
	return sold, nil
}
