// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/hostroot"
	"muster.dev/muster/internal/machine/machine"
)

// Local machines have a user namespace unless their group and the host's owner both say otherwise. Status says what a
// machine has.
func TestLaunchesIsolated(t *testing.T) {
	for _, test := range []struct {
		name     string
		asked    v1alpha1.Isolation
		provider v1alpha1.Provider
		allowed  hostroot.Clusters
		own      bool
		has      v1alpha1.Isolation
	}{
		{"by default", "", v1alpha1.ProviderLocal, nil, true, v1alpha1.IsolationUserNamespace},
		{"by default, where root may be the host's", "", v1alpha1.ProviderLocal, hostroot.Of("muster"), true, v1alpha1.IsolationUserNamespace},
		{"as asked", v1alpha1.IsolationUserNamespace, v1alpha1.ProviderLocal, nil, true, v1alpha1.IsolationUserNamespace},
		{"not, as allowed", v1alpha1.IsolationNone, v1alpha1.ProviderLocal, hostroot.Of("muster"), false, v1alpha1.IsolationNone},
		{"simulated", "", v1alpha1.ProviderSimulated, nil, false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := newTestMachine()
			m.Spec.Provider, m.Spec.Isolation = test.provider, test.asked
			w := newWorld(t, m)
			r := w.machines()
			r.Providers[v1alpha1.ProviderLocal], r.Providers[v1alpha1.ProviderSimulated] = w.provider, w.provider
			r.HostRoot = func() (hostroot.Clusters, error) { return test.allowed, nil }
			mustReconcile(t, r, id)
			if got := w.provider.request; got.OwnIDs != test.own || got.HostRoot != test.allowed.Allow("muster") {
				t.Errorf("asked for ids: %v, may go without: %v", got.OwnIDs, got.HostRoot)
			}
			if got := w.machine(t).Status.Isolation; got != test.has {
				t.Errorf("status says %q, want %q", got, test.has)
			}
		})
	}
}

// A machine that the owner does not allow boots neither the first time nor again.
func TestHostRootOfAMachineRefused(t *testing.T) {
	m := newTestMachine()
	m.Spec.Provider, m.Spec.Isolation = v1alpha1.ProviderLocal, v1alpha1.IsolationNone
	w := newWorld(t, m)
	r := w.machines()
	r.Providers[v1alpha1.ProviderLocal] = w.provider
	r.HostRoot = func() (hostroot.Clusters, error) { return hostroot.Of("another"), nil }
	if _, err := reconcileOnce(t, r, id); err == nil {
		t.Error("it does not try again")
	}
	if len(w.provider.instances) != 0 {
		t.Error("it was launched")
	}
	want(t, w.machine(t), v1alpha1.MachinePending, reasonHostRoot)
}

// A group says so too, makes no machines, and goes on when it is allowed.
func TestHostRootOfAGroupRefused(t *testing.T) {
	group := newTestGroup(2)
	group.Spec.Isolation = v1alpha1.IsolationNone
	w := newWorld(t, newTestCluster(), group)
	r := w.groups()
	list := hostroot.Of("another")
	r.HostRoot = func() (hostroot.Clusters, error) { return list, nil }
	if result := mustReconcile(t, r, "workers"); result.RequeueAfter != hostRootAgain {
		t.Errorf("tries again after %v", result.RequeueAfter)
	}
	wantGroup(t, w.group(t), reasonHostRoot, "muster up --allow-host-root muster")
	if machines := w.list(t); len(machines) != 0 {
		t.Errorf("%d machines", len(machines))
	}
	list = hostroot.Of("muster")
	mustReconcile(t, r, "workers")
	machines := w.list(t)
	if len(machines) != 2 || machines[0].Spec.Isolation != v1alpha1.IsolationNone || strings.Contains(w.group(t).Status.Conditions[0].Reason, reasonHostRoot) {
		t.Errorf("once it is allowed: %+v", machines)
	}
}

// A machine that was Ready and has ended says at once why it is not booted again, however often it is looked, and
// whatever its Node still says.
func TestHostRootOfAMachineThatDies(t *testing.T) {
	w, r := joined(t)
	m := w.machine(t)
	m.Spec.Isolation = v1alpha1.IsolationNone
	if err := w.management.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r.HostRoot = func() (hostroot.Clusters, error) { return hostroot.Of("another"), nil }
	w.provider.instances[0].State = machine.Stopped
	for range 3 {
		if _, err := reconcileOnce(t, r, id); err == nil {
			t.Error("it does not try again")
		}
		want(t, w.machine(t), v1alpha1.MachineNotReady, reasonHostRoot)
		w.now = w.now.Add(500 * time.Millisecond)
	}
	r.HostRoot = func() (hostroot.Clusters, error) { return hostroot.Of("muster"), nil }
	mustReconcile(t, r, id)
	if w.provider.instances[0].State != machine.Running {
		t.Error("it is not booted once it is allowed")
	}
}
