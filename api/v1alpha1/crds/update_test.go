// SPDX-License-Identifier: Apache-2.0

package crds_test

import (
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

const (
	oldCluster = `{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: a}}`
	oldGroup   = `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: a}, spec: {clusterName: muster, scalingConfig: {desiredSize: 1}}}`
	oldMachine = `{apiVersion: muster.dev/v1alpha1, kind: Machine, metadata: {name: i-0123456789abcdef0}, spec: {clusterName: muster, nodeGroup: workers, provider: local}}`
)

func TestUpdates(t *testing.T) {
	tests := []struct {
		name, old, patch string
		want             []string
	}{
		{"cluster: nothing", oldCluster, `{}`, nil},
		{"cluster: another port", oldCluster, `{spec: {apiServer: {port: 1}}}`, nil},
		{"cluster: another network", oldCluster, `{spec: {network: {vpcCIDR: 10.0.0.0/16}}}`, []string{"spec.network"}},
		{"node group: another size", oldGroup, `{spec: {clusterName: muster, scalingConfig: {desiredSize: 2}}}`, nil},
		{"node group: another cluster", oldGroup, `{spec: {clusterName: other, scalingConfig: {desiredSize: 1}}}`, []string{"spec"}},
		{"node group: another provider", oldGroup, `{spec: {clusterName: muster, provider: simulated, scalingConfig: {desiredSize: 1}}}`, []string{"spec"}},
		{"machine: status", oldMachine, `{status: {phase: Joining}}`, nil},
		{"machine: another group", oldMachine, `{spec: {clusterName: muster, nodeGroup: other, provider: local}}`, []string{"spec"}},
		{"machine: a label", oldMachine, `{spec: {clusterName: muster, nodeGroup: workers, provider: local, labels: {a: b}}}`, []string{"spec"}},
	}
	api := servers(t)
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			old, patch := parse(t, test.old), parse(t, test.patch)
			kind, _ := old["kind"].(string)
			if errs := api[kind].create(t, old); len(errs) > 0 {
				t.Fatal(errs.ToAggregate())
			}
			changed := runtime.DeepCopyJSON(old)
			maps.Copy(changed, patch)
			if errs := api[kind].create(t, changed); len(errs) > 0 {
				t.Fatalf("the object is wrong by itself: %v", errs.ToAggregate())
			}
			if got := paths(api[kind].check(t, changed, old)); !slices.Equal(got, test.want) {
				t.Errorf("wrong: %q, want %q", got, test.want)
			}
		})
	}
}
