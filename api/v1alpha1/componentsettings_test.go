// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/api/v1alpha1"
)

// Settings that an update leaves out stay; its feature gates are all that there are afterwards.
func TestChangeOfComponents(t *testing.T) {
	t.Parallel()
	minutes := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Minute} }
	c := v1alpha1.ClusterSpec{FeatureGates: v1alpha1.FeatureGates{"A": true}}
	c.APIServer.Port, c.APIServer.EventTTL = 6443, minutes(20)
	v1alpha1.UpdateComponents{
		APIServer: &v1alpha1.APIServerSettings{LogLevel: new(int32(2))}, ControllerManager: &v1alpha1.ControllerManagerSettings{LogLevel: new(int32(3))},
		Scheduler: &v1alpha1.SchedulerSettings{LogLevel: new(int32(4))},
	}.Change(&c)
	v1alpha1.UpdateComponents{Scheduler: &v1alpha1.SchedulerSettings{ScoringStrategy: &v1alpha1.ScoringStrategy{Type: v1alpha1.MostAllocated}}}.Change(&c)
	want := v1alpha1.ClusterSpec{FeatureGates: v1alpha1.FeatureGates{"A": true}}
	want.APIServer.Port, want.APIServer.EventTTL, want.APIServer.LogLevel = 6443, minutes(20), new(int32(2))
	want.ControllerManager.LogLevel, want.Scheduler.LogLevel = new(int32(3)), new(int32(4))
	want.Scheduler.ScoringStrategy = &v1alpha1.ScoringStrategy{Type: v1alpha1.MostAllocated}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	v1alpha1.UpdateComponents{FeatureGates: &v1alpha1.FeatureGates{"B": false}}.Change(&c)
	if diff := cmp.Diff(v1alpha1.FeatureGates{"B": false}, c.FeatureGates); diff != "" {
		t.Error(diff)
	}
	v1alpha1.UpdateComponents{FeatureGates: &v1alpha1.FeatureGates{}}.Change(&c)
	if len(c.FeatureGates) != 0 {
		t.Errorf("%v", c.FeatureGates)
	}
}
