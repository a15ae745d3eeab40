// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/portplan"
)

// TestRotateOverTheSocket asks for a rotation as the command line does.
func TestRotateOverTheSocket(t *testing.T) {
	s := newService(t)
	dir := s.cfg.State.Cluster("blue")
	h := s.host(t.Context(), dir)
	if status := h.status(t.Context()); status.Rotation != nil {
		t.Errorf("before there is an authority: %+v", status.Rotation)
	}
	if _, err := h.startRotation(); err == nil {
		t.Error("a rotation of nothing: no error")
	}
	c := component.Config{Account: component.Account{State: s.cfg.State, Places: portplan.AccountPorts{}.Places()}, Dir: dir, Places: portplan.Ports{}.Places(), Network: clusternetworktest.Network()}
	c.Cluster.Spec.Network.ServiceCIDR = "10.100.0.0/16"
	if err := s.ensureKeys(c.Account, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := h.ensureKeys(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	first, err := h.startRotation()
	if err != nil {
		t.Fatal(err)
	}
	again, err := h.startRotation()
	if err != nil || *again.Rotation != *first.Rotation {
		t.Errorf("asked again it begins another one: %+v, then %+v (%v)", first.Rotation, again.Rotation, err)
	}
	h.kubelets.Report("for you", &rotation.Progress{Nodes: 3})
	got := s.Status(t.Context()).Clusters[0].Rotation
	if got == nil || got.Signs != "kubelet-1" || len(got.Trusts) != 2 || got.Message != "for you" || got.Progress.Nodes != 3 {
		t.Errorf("status is %+v", got)
	}
}
