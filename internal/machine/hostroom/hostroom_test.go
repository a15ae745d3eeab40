// SPDX-License-Identifier: Apache-2.0

package hostroom

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
)

// Many ask at once for a host that five machines fit on. Simulated machines are not counted, nor are stopped ones.
func TestNothingIsGivenTwice(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	simulated := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-0"}, Spec: v1alpha1.MachineSpec{Provider: v1alpha1.ProviderSimulated, InstanceType: "m5.4xlarge"}}
	stopped := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-stopped"}, Spec: v1alpha1.MachineSpec{InstanceType: "m5.xlarge", PowerState: v1alpha1.PowerStopped}}
	stopped.Status.Conditions = []metav1.Condition{{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped}}
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(simulated, stopped).Build()
	room := New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: 24 << 30}.Offer(1), nil })
	var group sync.WaitGroup
	for n := range 20 {
		group.Go(func() {
			left, err := room.Hold(t.Context(), api)
			if err != nil {
				t.Error(err)
				return
			}
			defer left.Release()
			if left.Take("t3.medium") != nil {
				return
			}
			m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("i-%d", n+1)}}
			// The type is that of the launch template, or the machine's own.
			m.Spec = v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, InstanceType: "t3.medium"}
			if n%2 == 0 {
				m.Spec = v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "t3.medium"}}
			}
			if err := api.Create(t.Context(), m); err != nil {
				t.Error(err)
			}
			left.Release()
		})
	}
	group.Wait()
	var machines v1alpha1.MachineList
	if err := api.List(t.Context(), &machines); err != nil || len(machines.Items) != 7 {
		t.Errorf("%d machines, %v", len(machines.Items), err)
	}
}

// Of two machines that are started where one has room, one is, and the other when there is room for it: neither is counted
// while it waits, and the one that was let start is, before its status says so.
func TestMachinesThatAreStarted(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	was := []metav1.Condition{{Type: v1alpha1.ConditionRunning, Status: metav1.ConditionFalse, Reason: v1alpha1.ReasonStopped}}
	machines := make([]*v1alpha1.Machine, 3)
	for i := range machines {
		machines[i] = &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("i-%d", i)}, Spec: v1alpha1.MachineSpec{InstanceType: "m5.large"}}
	}
	runs, a, b := machines[0], machines[1], machines[2]
	a.Status.Conditions, b.Status.Conditions = was, was
	api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(runs, a, b).WithStatusSubresource(a).Build()
	room := New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: 24 << 30}.Offer(1), nil }) // two of them
	start := func(m *v1alpha1.Machine) bool {
		t.Helper()
		err := room.Start(t.Context(), api, m)
		if err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		if err != nil {
			m.Status.Conditions = slices.Concat(was, []metav1.Condition{{Type: v1alpha1.ConditionReady, Status: metav1.ConditionFalse, Reason: Code}})
			if err := api.Status().Update(t.Context(), m); err != nil {
				t.Fatal(err)
			}
		}
		return err == nil
	}
	if start(a) || !start(b) {
		t.Error("the first counts the second, and the second not the first, which waits")
	}
	if start(a) {
		t.Error("both are started")
	}
	if left, err := room.Hold(t.Context(), api); err != nil || left.Take("m5.large") == nil {
		t.Errorf("the room of the one that starts is given away: %v", err)
	} else {
		left.Release()
	}
	if err := api.Delete(t.Context(), runs); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if !start(a) {
			t.Error("it waits although there is room")
		}
	}
	if left, err := room.Hold(t.Context(), api); err != nil || left.Take("m5.large") == nil {
		t.Errorf("the room of the one that is let start is given away before it runs: %v", err)
	} else {
		left.Release()
	}
	a.Spec.Provider = v1alpha1.ProviderSimulated
	if err := errors.Join(room.Start(t.Context(), api, a), (*Room)(nil).Start(t.Context(), api, b)); err != nil {
		t.Errorf("a machine without substance, or a host that is not known: %v", err)
	}
}

// A question that fails lets the next one ask.
func TestHoldFails(t *testing.T) {
	fails := errors.New("no figures")
	room := New(func() (capacity.Offer, error) { return capacity.Offer{}, fails })
	api := fake.NewClientBuilder().Build() // knows no machines
	for range 2 {
		if _, err := room.Hold(t.Context(), api); !errors.Is(err, fails) {
			t.Errorf("without figures: %v", err)
		}
	}
	fails = nil
	for range 2 {
		if _, err := room.Hold(t.Context(), api); err == nil {
			t.Error("machines that cannot be listed are none")
		}
	}
}
