// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"maps"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// A node that joins asks the API server for no more than it needs: hundreds join at once.
func TestRequestsOfJoin(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	s.launch(t, 1, token)
	s.eventually(t, s.ready(1))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	want := map[string]int{
		"POST certificatesigningrequests": 2, "GET certificatesigningrequests": 2, // to the client certificate and the serving certificate; watched
		"GET /version": 1, "POST nodes": 1, "PATCH nodes/status": 1, "POST leases": 1,
	}
	if !maps.Equal(s.server.asked, want) {
		t.Errorf("a join asks for %v, want %v", s.server.asked, want)
	}
	for name, lease := range s.server.leases {
		owners := lease.OwnerReferences
		if len(owners) != 1 || owners[0].Kind != "Node" || owners[0].UID != s.server.nodes[name].UID || owners[0].UID == "" || lease.Spec.RenewTime == nil {
			t.Errorf("lease is %+v, want it owned by its node and renewed", lease)
		}
	}
	for name, node := range s.server.nodes {
		// No controller has to add these: the kubelet registers with them.
		for _, older := range []string{"beta.kubernetes.io/os", "beta.kubernetes.io/arch"} {
			if node.Labels[older] == "" {
				t.Errorf("node %s lacks the label %s", name, older)
			}
		}
	}
}

// A node that comes back goes on with the lease that it left.
func TestLeaseOfEarlierLife(t *testing.T) {
	s := newScene(t, time.Hour)
	stop := s.simulate(t)
	s.launch(t, 1, token)
	s.eventually(t, s.ready(1))
	stop()
	s.server.mutex.Lock()
	before := map[string]time.Time{}
	owners := map[string]types.UID{}
	for name, lease := range s.server.leases {
		before[name], owners[name] = lease.Spec.RenewTime.Time, lease.OwnerReferences[0].UID
	}
	s.server.mutex.Unlock()
	defer s.simulate(t)()
	s.eventually(t, func() string {
		for name, lease := range s.server.leases {
			if !lease.Spec.RenewTime.After(before[name]) || lease.OwnerReferences[0].UID != owners[name] {
				return "the lease is not renewed"
			}
		}
		return ""
	})
}
