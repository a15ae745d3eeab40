// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
)

// A host has room for two machines of 8 GiB, and a group is to have four.
func TestHostIsFinite(t *testing.T) {
	group := newTestGroup(4)
	group.Spec.Provider = v1alpha1.ProviderLocal
	w := newWorld(t, newTestCluster(), group)
	offer, fails := capacity.Host{CPUs: 2, Memory: 24 << 30}.Offer(1), error(nil)
	w.Room = hostroom.New(func() (capacity.Offer, error) { return offer, fails })
	for range 2 {
		if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
			t.Fatal(err)
		}
		condition := w.group(t).Status.Conditions[0]
		if n := len(w.list(t)); n != 2 || condition.Reason != "InsufficientInstanceCapacity" {
			t.Fatalf("%d machines, and %s: %s", n, condition.Reason, condition.Message)
		}
		for _, part := range []string{"InsufficientInstanceCapacity: the host has no room for 2 machines of type m5.large: one takes 8.0 GiB of memory and 2 vCPUs", "5.0 GiB and 28 left of the 21.0 GiB and 32", "smaller type"} {
			if !strings.Contains(condition.Message, part) {
				t.Errorf("it says %q, and not %q", condition.Message, part)
			}
		}
	}
	fails = errors.New("no figures")
	if _, err := reconcileOnce(t, w.groups(), "workers"); err == nil || !strings.Contains(err.Error(), "no figures") {
		t.Errorf("without figures: %v", err)
	}
	if n := len(w.list(t)); n != 2 {
		t.Errorf("%d machines", n)
	}
	offer, fails = capacity.Host{CPUs: 2, Memory: 48 << 30}.Offer(1), nil
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if n := len(w.list(t)); n != 4 {
		t.Errorf("%d machines on a larger host", n)
	}
}

func TestSimulatedMachinesNeedNoHost(t *testing.T) {
	group := newTestGroup(4)
	group.Spec.Provider = v1alpha1.ProviderSimulated
	w := newWorld(t, newTestCluster(), group)
	w.Room = hostroom.New(func() (capacity.Offer, error) { return capacity.Offer{}, errors.New("no figures") })
	if _, err := reconcileOnce(t, w.groups(), "workers"); err != nil {
		t.Fatal(err)
	}
	if n := len(w.list(t)); n != 4 {
		t.Errorf("%d machines", n)
	}
}
