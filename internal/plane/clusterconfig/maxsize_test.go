// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// A group of local machines grows beyond five machines only if somebody says so.
func TestDefaultMaxSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		spec string
		want int32
	}{
		{"scalingConfig: {desiredSize: 1}", 5},
		{"scalingConfig: {desiredSize: 9}", 9},
		{"scalingConfig: {desiredSize: 1, maxSize: null}", 5},
		{"scalingConfig: {desiredSize: 1, maxSize: 3}", 3},
		{"scalingConfig: {desiredSize: 1, maxSize: 5000}", 5000},
		{"provider: local, scalingConfig: {minSize: 7, desiredSize: 7}", 7},
		{"provider: simulated, scalingConfig: {desiredSize: 1}", 5000},
	} {
		config, err := Parse("muster.yaml", []byte("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: g}, spec: {"+test.spec+"}}"))
		if err != nil {
			t.Fatal(err)
		}
		if got := config.NodeGroups[0].Spec.ScalingConfig.MaxSize; got != test.want {
			t.Errorf("%s: maxSize %d, want %d", test.spec, got, test.want)
		}
	}
	for _, test := range []struct {
		nodes    int
		provider v1alpha1.Provider
		want     int32
	}{{3, v1alpha1.ProviderLocal, 5}, {8, v1alpha1.ProviderLocal, 8}, {3, v1alpha1.ProviderSimulated, 5000}} {
		if got := Default(test.nodes, test.provider).NodeGroups[0].Spec.ScalingConfig.MaxSize; got != test.want {
			t.Errorf("%d %s nodes: maxSize %d, want %d", test.nodes, test.provider, got, test.want)
		}
	}
}

// A group that exists keeps the maxSize that it has.
func TestKeepMaxSize(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		file               string
		exists, want, most int32
	}{
		{"desiredSize: 3", 5000, 5000, 0},
		{"desiredSize: 3", 4, 4, 0},
		{"desiredSize: 9", 5, 0, 5},
		{"desiredSize: 9, maxSize: 12", 5, 12, 0},
	} {
		config, err := Parse("muster.yaml", []byte("{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: g}, spec: {scalingConfig: {"+test.file+"}}}"))
		if err != nil {
			t.Fatal(err)
		}
		exists := config.NodeGroups[0].DeepCopy()
		exists.Spec.ScalingConfig.MaxSize = test.exists
		err = config.KeepMaxSize(config.NodeGroups[0], exists)
		var refused *MaxSizeError
		if errors.As(err, &refused) != (test.most != 0) || err == nil && config.NodeGroups[0].Spec.ScalingConfig.MaxSize != test.want {
			t.Errorf("%s over %d: maxSize %d, %v", test.file, test.exists, config.NodeGroups[0].Spec.ScalingConfig.MaxSize, err)
		}
		if err != nil && !strings.Contains(err.Error(), "muster scale nodegroup g 9 --max 9") {
			t.Error(err)
		}
	}
}
