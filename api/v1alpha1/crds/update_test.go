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
	oldUser    = `{apiVersion: muster.dev/v1alpha1, kind: IAMUser, metadata: {name: "000000000000.a"}, spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:user/a", created: "2026-01-01T00:00:00Z", userID: AIDAAAAAAAAAAAAAAAAAA}}`
	oldMachine = `{apiVersion: muster.dev/v1alpha1, kind: Machine, metadata: {name: i-0123456789abcdef0}, spec: {clusterName: muster, nodeGroup: workers, provider: local}}`
)

func access(mode string) string { return `{spec: {accessConfig: {authenticationMode: ` + mode + `}}}` }

func mode(mode string) string {
	return `{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: a}, spec: {accessConfig: {authenticationMode: ` + mode + `}}}`
}

func TestUpdates(t *testing.T) {
	tests := []struct {
		name, old, patch string
		want             []string
	}{
		{"cluster: nothing", oldCluster, `{}`, nil},
		{"cluster: another port", oldCluster, `{spec: {apiServer: {port: 1}}}`, nil},
		{"cluster: another network", oldCluster, `{spec: {network: {vpcCIDR: 10.0.0.0/16}}}`, []string{"spec.network"}},
		{"cluster: access entries first", mode("CONFIG_MAP"), access("API_AND_CONFIG_MAP"), nil},
		{"cluster: access entries alone", mode("API_AND_CONFIG_MAP"), access("API"), nil},
		{"cluster: access entries alone, at once", mode("CONFIG_MAP"), access("API"), nil},
		{"cluster: the same mode", mode("API"), access("API"), nil},
		{"cluster: back to both", mode("API"), access("API_AND_CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to aws-auth", mode("API_AND_CONFIG_MAP"), access("CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to aws-auth by leaving the default", oldCluster, access("CONFIG_MAP"), []string{"spec.accessConfig.authenticationMode"}},
		{"cluster: back to the default by leaving it out", mode("API"), `{spec: {}}`, []string{"spec.accessConfig.authenticationMode"}},
		{"node group: another size", oldGroup, `{spec: {clusterName: muster, scalingConfig: {desiredSize: 2}}}`, nil},
		{"node group: another cluster", oldGroup, `{spec: {clusterName: other, scalingConfig: {desiredSize: 1}}}`, []string{"spec"}},
		{"node group: another provider", oldGroup, `{spec: {clusterName: muster, provider: simulated, scalingConfig: {desiredSize: 1}}}`, []string{"spec"}},
		{"IAM user: another path", oldUser, `{spec: {account: "000000000000", path: /b/, name: a, arn: "arn:aws:iam::000000000000:user/b/a", created: "2026-01-01T00:00:00Z", userID: AIDAAAAAAAAAAAAAAAAAA}}`, nil},
		{"IAM user: another id", oldUser, `{spec: {account: "000000000000", path: /, name: a, arn: "arn:aws:iam::000000000000:user/a", created: "2026-01-01T00:00:00Z", userID: AIDABAAAAAAAAAAAAAAAA}}`, []string{"spec"}},
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
