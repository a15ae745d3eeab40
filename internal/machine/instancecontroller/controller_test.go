// SPDX-License-Identifier: Apache-2.0

package instancecontroller

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	clientfake "sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/capacity"
	"muster.dev/muster/internal/machine/hostroom"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/fake"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/terminated"
)

const id = "i-0123456789abcdef0"

type world struct {
	*instances
	provider *fake.Provider
}

func newWorld(t *testing.T, m *v1alpha1.Machine) *world {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	subnets, _ := machinetest.Subnets() // which never fails
	provider := fake.New(fake.Config{Subnet: subnets[0], Region: machinetest.Region()})
	api := clientfake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(m).WithObjects(m).Build()
	return &world{&instances{
		Config: Config{Providers: map[v1alpha1.Provider]machine.Provider{v1alpha1.ProviderLocal: provider}, Log: slog.New(slog.DiscardHandler), Now: time.Now},
		api:    api, live: api, events: events.NewFakeRecorder(10),
	}, provider}
}

func newMachine() *v1alpha1.Machine {
	return &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: id, UID: "machine-uid"},
		Spec:       v1alpha1.MachineSpec{Provider: v1alpha1.ProviderLocal, InstanceType: "m5.large", UserData: []byte("its own")},
	}
}

func (w *world) reconcile(t *testing.T) reconcile.Result {
	t.Helper()
	result, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func (w *world) get(t *testing.T) *v1alpha1.Machine {
	t.Helper()
	m := &v1alpha1.Machine{}
	if err := w.api.Get(t.Context(), client.ObjectKey{Name: id}, m); client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	return m
}

func want(t *testing.T, m *v1alpha1.Machine, phase v1alpha1.MachinePhase, reason string) {
	t.Helper()
	ready := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ConditionReady)
	if ready == nil || m.Status.Phase != phase || ready.Reason != reason {
		t.Errorf("phase %s, Ready %+v; want %s, %s", m.Status.Phase, ready, phase, reason)
	}
}

func TestLifeOfAnInstance(t *testing.T) {
	w := newWorld(t, newMachine())
	if result := w.reconcile(t); result.RequeueAfter != lookAgain {
		t.Errorf("looks again after %v", result.RequeueAfter)
	}
	m := w.get(t)
	want(t, m, v1alpha1.MachineReady, reasonRunning)
	if m.Status.ProviderID == "" || m.Status.NodeName == "" || len(m.Status.Addresses) != 2 || len(m.Status.Join) != 1 {
		t.Errorf("status %+v", m.Status)
	}
	if got := string(w.provider.UserData(id)); got != "its own" {
		t.Errorf("user data %q", got)
	}

	// It dies, and is booted again.
	w.provider.Die(id)
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineReady, reasonRunning)
	if n := w.provider.Calls(fake.Launch); n != 2 {
		t.Errorf("%d launches, want 2", n)
	}

	// It is deleted; the first try to terminate it fails.
	if err := w.api.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	w.provider.Fail(fake.Terminate, errors.New("not now"))
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}}); err == nil || !strings.Contains(err.Error(), "not now") {
		t.Errorf("a termination that fails: %v", err)
	}
	want(t, w.get(t), v1alpha1.MachineTerminating, reasonTermination)
	w.reconcile(t)
	if m := w.get(t); m != nil {
		t.Errorf("the machine is still there: %+v", m)
	}
	if gone, err := terminated.List(t.Context(), w.api); err != nil || len(gone) != 1 || gone[0].Machine.Name != id {
		t.Errorf("remembered: %+v, %v", gone, err)
	}
	if _, err := w.provider.Get(t.Context(), id); !errors.Is(err, machine.ErrNotFound) {
		t.Errorf("the instance is still there: %v", err)
	}
}

// An instance stops, starts and reboots as its spec says, and is not booted again meanwhile.
func TestPower(t *testing.T) {
	w := newWorld(t, newMachine())
	w.reconcile(t)
	change := func(change func(*v1alpha1.MachineSpec)) {
		t.Helper()
		m := w.get(t)
		change(&m.Spec)
		if err := w.api.Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	change(func(s *v1alpha1.MachineSpec) { s.PowerState = v1alpha1.PowerStopped })
	if result := w.reconcile(t); result.RequeueAfter != soon {
		t.Errorf("goes on after %v", result.RequeueAfter)
	}
	want(t, w.get(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopping)
	for range 2 {
		w.reconcile(t)
		want(t, w.get(t), v1alpha1.MachineStopped, v1alpha1.ReasonStopped)
	}
	if w.provider.Calls(fake.Launch) != 1 || w.provider.Calls(fake.Stop) != 1 {
		t.Errorf("%d launches, %d stops", w.provider.Calls(fake.Launch), w.provider.Calls(fake.Stop))
	}
	memory := int64(1 << 30)
	w.Room = hostroom.New(func() (capacity.Offer, error) { return capacity.Host{CPUs: 2, Memory: memory}.Offer(0), nil })
	change(func(s *v1alpha1.MachineSpec) { s.PowerState = v1alpha1.PowerRunning })
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineNotReady, hostroom.Code)
	memory = 24 << 30
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineReady, reasonRunning)
	change(func(s *v1alpha1.MachineSpec) { s.Reboots++ })
	for range 3 {
		w.reconcile(t)
	}
	m := w.get(t)
	want(t, m, v1alpha1.MachineReady, reasonRunning)
	if w.provider.Calls(fake.Launch) != 3 || w.provider.Calls(fake.Stop) != 2 || m.Status.Reboots != 1 || m.Status.StartedAt == nil {
		t.Errorf("%d launches, %d stops, status %+v", w.provider.Calls(fake.Launch), w.provider.Calls(fake.Stop), m.Status)
	}
	change(func(s *v1alpha1.MachineSpec) { s.Reboots++ })
	w.provider.Fail(fake.Stop, errors.New("not now"))
	if _, err := w.Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: id}}); err == nil {
		t.Error("a stop that fails is not tried again")
	}
	want(t, w.get(t), v1alpha1.MachineReady, reasonStopFailed)
}

func TestLaunchFails(t *testing.T) {
	w := newWorld(t, newMachine())
	w.provider.Fail(fake.Launch, machine.ErrSubnetFull)
	if result := w.reconcile(t); result.RequeueAfter != failedAgain {
		t.Errorf("tries again after %v", result.RequeueAfter)
	}
	want(t, w.get(t), v1alpha1.MachinePending, reasonFailed)
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineReady, reasonRunning)
}

// An instance that was stopped for the reserve of the host's disk says so until it may boot.
func TestStoppedForReserve(t *testing.T) {
	w := newWorld(t, newMachine())
	w.reconcile(t)
	w.provider.Die(id)
	w.provider.Fail(fake.Launch, machine.ErrDiskReserve)
	if result := w.reconcile(t); result.RequeueAfter != lookAgain {
		t.Errorf("tries again after %v", result.RequeueAfter)
	}
	want(t, w.get(t), v1alpha1.MachineNotReady, reasonReserve)
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineReady, reasonRunning)
}

// Machines of clusters are those of the clusters' controllers.
func TestMachineOfACluster(t *testing.T) {
	m := newMachine()
	m.Spec.ClusterName = "one"
	w := newWorld(t, m)
	w.reconcile(t)
	if m := w.get(t); len(m.Finalizers) > 0 || m.Status.Phase != "" || w.provider.Calls(fake.Launch) > 0 {
		t.Errorf("it was touched: %+v", m)
	}
}

// An instance that names no group is in its VPC's default one: without any, nothing would reach it.
func TestSecurityGroups(t *testing.T) {
	m := newMachine()
	m.Spec.SubnetID = "subnet-0000000000000000a"
	w := newWorld(t, m)
	if _, err := w.securityGroups(t.Context(), m); err == nil {
		t.Error("a subnet that is not there has a default group")
	}
	subnet := &v1alpha1.Subnet{ObjectMeta: metav1.ObjectMeta{Name: "subnet-0000000000000000a"}, Spec: v1alpha1.SubnetSpec{VPCID: "vpc-0000000000000000a"}}
	if err := w.api.Create(t.Context(), subnet); err != nil {
		t.Fatal(err)
	}
	if got, err := w.securityGroups(t.Context(), m); err != nil || len(got) != 1 || got[0] != v1alpha1.DefaultSecurityGroupID("vpc-0000000000000000a") {
		t.Errorf("%v, %v", got, err)
	}
	m.Spec.SecurityGroupIDs = []string{"sg-0123456789abcdef0"}
	if got, err := w.securityGroups(t.Context(), m); err != nil || len(got) != 1 || got[0] != "sg-0123456789abcdef0" {
		t.Errorf("%v, %v", got, err)
	}
}

// An instance whose record is damaged runs on, and its Machine says so.
func TestDamagedRecord(t *testing.T) {
	w := newWorld(t, newMachine())
	w.reconcile(t)
	w.provider.Fail(fake.Get, machine.ErrDamaged)
	if result := w.reconcile(t); result.RequeueAfter != failedAgain {
		t.Errorf("looks again after %v", result.RequeueAfter)
	}
	want(t, w.get(t), v1alpha1.MachineReady, reasonDamaged)
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachineReady, reasonRunning)
}

// An instance that is gone without its Machine does not come back.
func TestLostInstance(t *testing.T) {
	w := newWorld(t, newMachine())
	w.reconcile(t)
	if err := w.provider.Terminate(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	w.reconcile(t)
	w.reconcile(t)
	if m := w.get(t); m != nil {
		t.Errorf("the machine is still there: %+v", m)
	}
}

func TestNoProvider(t *testing.T) {
	m := newMachine()
	m.Spec.Provider = v1alpha1.ProviderSimulated
	w := newWorld(t, m)
	w.reconcile(t)
	want(t, w.get(t), v1alpha1.MachinePending, reasonNoProvider)
}

// launches remembers what a provider is asked to launch.
type launches struct {
	machine.Provider
	last machine.LaunchRequest
}

func (l *launches) Launch(ctx context.Context, r machine.LaunchRequest) (machine.Instance, error) {
	l.last = r
	return l.Provider.Launch(ctx, r)
}

// An instance is told what it was bought as, and that it is of an Auto Scaling group.
func TestMarketAndGroup(t *testing.T) {
	for name, c := range map[string]struct {
		change       func(*v1alpha1.MachineSpec)
		scaled, spot bool
	}{
		"of nobody":  {func(*v1alpha1.MachineSpec) {}, false, false},
		"spot":       {func(s *v1alpha1.MachineSpec) { s.MarketType = v1alpha1.MarketSpot }, false, true},
		"of a group": {func(s *v1alpha1.MachineSpec) { s.ScalingGroup = &v1alpha1.MachineScalingGroup{Name: "own", UID: "uid"} }, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine()
			c.change(&m.Spec)
			w := newWorld(t, m)
			of := &launches{Provider: w.provider}
			w.Providers = map[v1alpha1.Provider]machine.Provider{v1alpha1.ProviderLocal: of}
			w.reconcile(t)
			if of.last.Scaled != c.scaled || of.last.Spot != c.spot {
				t.Errorf("launched as %+v", of.last)
			}
		})
	}
}
