// SPDX-License-Identifier: Apache-2.0

package service

import (
	"errors"
	"fmt"
	"testing"

	"muster.dev/muster/api/v1alpha1"
)

// A context of the same name that belongs to another cluster shows the other's nodes.
func TestFirstLook(t *testing.T) {
	t.Parallel()
	if got := firstLook("muster", nil); got != "kubectl --context muster get nodes" {
		t.Errorf("got %q", got)
	}
	if got := firstLook("muster", errors.New("belongs to another cluster")); got != "muster get nodes" {
		t.Errorf("got %q", got)
	}
}

// --auto says how a cluster is to be, new or not; without it the cluster stays as it is.
func TestAuto(t *testing.T) {
	t.Parallel()
	role := &v1alpha1.ClusterCompute{Enabled: true, NodePools: []v1alpha1.NodePoolName{v1alpha1.PoolSystem}, NodeRole: "own"}
	for name, c := range map[string]struct {
		up   upOptions
		is   *v1alpha1.ClusterCompute
		want string
	}{
		"not given":         {upOptions{}, role, "&{true [system] own}"},
		"a new cluster":     {upOptions{auto: true, autoSet: true}, nil, "&{true [general-purpose system] }"},
		"as it is":          {upOptions{auto: true, autoSet: true}, role, "&{true [system] own}"},
		"off":               {upOptions{autoSet: true}, role, "&{false [] own}"},
		"off as it was":     {upOptions{autoSet: true}, nil, "<nil>"},
		"on again":          {upOptions{auto: true, autoSet: true}, &v1alpha1.ClusterCompute{NodeRole: "own"}, "&{true [general-purpose system] own}"},
		"on without a role": {upOptions{auto: true, autoSet: true}, &v1alpha1.ClusterCompute{}, "&{true [general-purpose system] }"},
	} {
		cluster := &v1alpha1.Cluster{Spec: v1alpha1.ClusterSpec{Compute: c.is}}
		c.up.compute(cluster)
		if got := fmt.Sprint(cluster.Spec.Compute); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
