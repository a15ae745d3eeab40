// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// chosen is a cluster with every setting.
func chosen(c Config) Config {
	spec := &c.Cluster.Spec
	spec.APIServer.APIServerSettings = v1alpha1.APIServerSettings{
		EventTTL: &metav1.Duration{Duration: 30 * time.Minute}, ServiceNodePortRange: &v1alpha1.NodePortRange{MinPort: 20000, MaxPort: 25000}, LogLevel: new(int32(2)),
	}
	spec.ControllerManager = v1alpha1.ControllerManagerSettings{
		HorizontalPodAutoscalerSyncPeriod: &metav1.Duration{Duration: 10 * time.Second}, TerminatedPodGCThreshold: new(int32(10000)), LogLevel: new(int32(3)),
	}
	spec.Scheduler = v1alpha1.SchedulerSettings{ScoringStrategy: &v1alpha1.ScoringStrategy{
		Type: v1alpha1.MostAllocated, Resources: []v1alpha1.ResourceWeight{{Name: "nvidia.com/gpu", Weight: 100}, {Name: "cpu", Weight: 1}},
	}, LogLevel: new(int32(4))}
	spec.FeatureGates = v1alpha1.FeatureGates{"WatchList": false, "GangScheduling": true}
	return c
}

// changedArgs are the flags that settings take from a component and give it, and the files that they give it.
type changedArgs struct {
	Component   string   `json:"component"`
	Gone, Given []string `json:",omitempty"`
	Files       []File   `json:"files,omitempty"`
}

// changedBySettings are the components that settings change.
func changedBySettings(t *testing.T) (all []changedArgs) {
	t.Helper()
	before, after := specs(t, fixed(true)), specs(t, chosen(fixed(true)))
	lacks := func(args, others []string) []string {
		return slices.DeleteFunc(slices.Clone(args), func(arg string) bool { return slices.Contains(others, arg) })
	}
	for i, is := range after {
		if was := before[i]; was.Hash() != is.Hash() {
			all = append(all, changedArgs{is.Name, lacks(was.Args, is.Args), lacks(is.Args, was.Args), is.Files[min(len(was.Files), len(is.Files)):]})
		}
	}
	return all
}

// A strategy without a type or resources is upstream's.
func TestSchedulerConfigurationOfDefaults(t *testing.T) {
	t.Parallel()
	whole := v1alpha1.ScoringStrategy{Type: v1alpha1.LeastAllocated, Resources: v1alpha1.DefaultScoringResources()}
	if got, want := schedulerConfiguration(v1alpha1.ScoringStrategy{}, "/k"), schedulerConfiguration(whole, "/k"); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// Gates of a release stay beside those of a cluster, which come after them.
func TestFeatureGatesBesideThoseOfARelease(t *testing.T) {
	t.Parallel()
	c := chosen(fixed(true))
	c.Release.Flags = map[string]map[string]string{"kube-scheduler": {"feature-gates": "AllBeta=false"}}
	for _, spec := range specs(t, c) {
		_, values := flagsOf(t, spec)
		want := map[string]string{APIServer: "GangScheduling=true,WatchList=false", ControllerManager: "GangScheduling=true,WatchList=false", Scheduler: "AllBeta=false,GangScheduling=true,WatchList=false"}[spec.Name]
		if values["feature-gates"] != want {
			t.Errorf("%s has the gates %q, want %q", spec.Name, values["feature-gates"], want)
		}
	}
}
