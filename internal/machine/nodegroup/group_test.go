// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/platform/release"
)

func newTestCluster() *v1alpha1.Cluster {
	return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "muster", Name: "muster", UID: "cluster-uid", Generation: 1}, Spec: v1alpha1.ClusterSpec{Name: "muster"}}
}

func newTestGroup(desired int32) *v1alpha1.NodeGroup {
	group := &v1alpha1.NodeGroup{
		ObjectMeta: metav1.ObjectMeta{Namespace: "muster", Name: "workers", UID: "group-uid", Generation: 3},
		Spec: v1alpha1.NodeGroupSpec{
			Name:          "workers",
			ScalingConfig: v1alpha1.ScalingConfig{DesiredSize: desired},
			Labels:        v1alpha1.NodeLabels{"team": "blue"},
			Taints:        v1alpha1.NodeTaints{{Key: "a", Effect: "NoSchedule"}},

			LaunchTemplate: &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "m5.large", SecurityGroupIDs: []string{"sg-0123456789abcdef0"}, Tags: v1alpha1.Tags{"a": "b"}},
		},
	}
	group.Default()
	return group
}

func (w *world) list(t *testing.T) []v1alpha1.Machine {
	t.Helper()
	list := &v1alpha1.MachineList{}
	if err := w.faults.off(func() error { return w.management.List(t.Context(), list) }); err != nil {
		t.Fatal(err)
	}
	return list.Items
}

func (w *world) group(t *testing.T) *v1alpha1.NodeGroup {
	t.Helper()
	group := &v1alpha1.NodeGroup{}
	if !w.get(t, w.management, group, "workers") {
		t.Fatal("the group is gone")
	}
	return group
}

func (w *world) scale(t *testing.T, desired int32) {
	t.Helper()
	group := w.group(t)
	group.Spec.ScalingConfig.DesiredSize = desired
	if err := w.management.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
}

func wantGroup(t *testing.T, group *v1alpha1.NodeGroup, reason, message string) {
	t.Helper()
	condition := meta.FindStatusCondition(group.Status.Conditions, v1alpha1.ConditionReady)
	if condition == nil || condition.Reason != reason || !strings.Contains(condition.Message, message) || (condition.Status == "True") != (reason == "Ready") {
		t.Errorf("condition %+v, want %s: %s", condition, reason, message)
	}
}

// A machine of an earlier version of Muster keeps the role that it has, and is not replaced for the new one.
func TestMachinesOfBeforeKeepTheirRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t, newTestCluster(), newTestGroup(1))
	r := w.groups()
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	before := w.list(t)[0]
	before.Spec.InstanceProfile = v1alpha1.AccountNodeRole
	if err := w.management.Update(t.Context(), &before); err != nil { // which an API server would refuse
		t.Fatal(err)
	}
	before.Status.Phase = v1alpha1.MachineReady
	if err := w.management.Status().Update(t.Context(), &before); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, r, "workers")
	wantGroup(t, w.group(t), "Ready", "1 of 1 machine is Ready")
	w.scale(t, 2)
	mustReconcile(t, r, "workers")
	machines := w.list(t)
	profiles := map[string]int{}
	for _, m := range machines {
		profiles[m.Spec.InstanceProfile]++
		if m.DeletionTimestamp != nil {
			t.Errorf("machine %s is deleted", m.Name)
		}
	}
	if want := map[string]int{"muster-node": 1, "profile-of-muster-node-muster": 1}; !maps.Equal(profiles, want) {
		t.Errorf("machines have the profiles %v, want %v", profiles, want)
	}
}

func TestGroupScales(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	r := w.groups()
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	machines := w.list(t)
	if len(machines) != 3 {
		t.Fatalf("%d machines, want 3", len(machines))
	}
	zones := map[v1alpha1.SubnetID]int{}
	for _, m := range machines {
		zones[m.Spec.SubnetID]++
		if !regexp.MustCompile(`^i-[0-9a-f]{17}$`).MatchString(m.Name) {
			t.Errorf("name %q", m.Name)
		}
		expected := v1alpha1.MachineSpec{
			ClusterName: "muster", NodeGroup: "workers", NodeGroupUID: "group-uid", Provider: v1alpha1.ProviderLocal,
			Labels: v1alpha1.NodeLabels{"team": "blue"}, Taints: v1alpha1.NodeTaints{{Key: "a", Effect: "NoSchedule"}},
			LaunchTemplate:   &v1alpha1.NodeGroupLaunchTemplate{InstanceType: "m5.large", SecurityGroupIDs: []string{"sg-0123456789abcdef0"}, Tags: v1alpha1.Tags{"a": "b"}},
			SecurityGroupIDs: []string{"sg-0123456789abcdef0"}, Tags: v1alpha1.Tags{"a": "b"}, InstanceProfile: "profile-of-muster-node-muster",
			SubnetID: m.Spec.SubnetID, ImageID: ami.OfRelease(release.Default()),
		}
		if diff := cmp.Diff(expected, m.Spec); diff != "" {
			t.Errorf("spec (-want +got):\n%s", diff)
		}
		labels := map[string]string{v1alpha1.LabelCluster: "muster", v1alpha1.LabelNodeGroup: "workers"}
		if !maps.Equal(m.Labels, labels) || len(m.OwnerReferences) != 0 || m.Finalizers[0] != v1alpha1.FinalizerMachine {
			t.Errorf("metadata %+v", m.ObjectMeta)
		}
	}
	if want := map[v1alpha1.SubnetID]int{clusternetworktest.SubnetA: 2, clusternetworktest.SubnetB: 1}; !maps.Equal(zones, want) {
		t.Errorf("they are in %v", zones)
	}
	group := w.group(t)
	wantGroup(t, group, "Joining", "0 of 3 machines are Ready")
	if s := group.Status; s.Replicas != 3 || s.ReadyReplicas != 0 || s.Selector != "muster.dev/cluster=muster,muster.dev/nodegroup=workers" || s.ObservedGeneration != 3 {
		t.Errorf("status %+v", s)
	}

	for i := range machines {
		machines[i].Status.Phase = v1alpha1.MachineReady
		if i == 1 {
			machines[i].Status.Phase = v1alpha1.MachineJoining
		}
		if err := w.management.Status().Update(t.Context(), &machines[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.scale(t, 2)
	mustReconcile(t, r, "workers")
	mustReconcile(t, r, "workers")
	for _, m := range w.list(t) {
		if m.DeletionTimestamp.IsZero() != (m.Name != machines[1].Name) {
			t.Errorf("machine %s, phase %s, deleted at %v", m.Name, m.Status.Phase, m.DeletionTimestamp)
		}
	}
	wantGroup(t, w.group(t), "Ready", "2 of 2 machines are Ready; going: 1 machine")
	if diff := cmp.Diff([]string{
		"Normal ScalingUp: made 3 machines: the group has 0 of 3 machines",
		"Normal ScalingDown: deleted machine " + machines[1].Name + ": the group has 3 machines, and is to have 2, and this one has not joined yet",
	}, w.events.list); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	writes := w.faults.calls["management patch status *v1alpha1.NodeGroup"]
	mustReconcile(t, r, "workers")
	if again := w.faults.calls["management patch status *v1alpha1.NodeGroup"]; again != writes {
		t.Error("a status without news was written")
	}
}

// The cache shows no machine yet: the API server is asked before any is made.
func TestGroupStaleCache(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(3))
	empty := newWorld(t, newTestCluster(), newTestGroup(3))
	mustReconcile(t, w.groups(), "workers")
	r := w.groups()
	r.management = staleLists{Client: w.management, lists: empty.management}
	mustReconcile(t, r, "workers")
	if got := len(w.list(t)); got != 3 {
		t.Errorf("%d machines, want 3", got)
	}
}

func TestGroupDeleted(t *testing.T) {
	w := newWorld(t, newTestCluster(), newTestGroup(2))
	mustReconcile(t, w.groups(), "workers")
	if err := w.management.Delete(t.Context(), newTestGroup(2)); err != nil {
		t.Fatal(err)
	}
	mustReconcile(t, w.groups(), "workers")
	mustReconcile(t, w.groups(), "workers")
	wantGroup(t, w.group(t), "Deleting", "waiting for 2 machines to go")
	for _, m := range w.list(t) {
		if m.DeletionTimestamp.IsZero() {
			t.Errorf("machine %s is not being deleted", m.Name)
		}
		m.Finalizers = nil
		if err := w.management.Update(t.Context(), &m); err != nil {
			t.Fatal(err)
		}
	}
	mustReconcile(t, w.groups(), "workers")
	if w.get(t, w.management, &v1alpha1.NodeGroup{}, "workers") {
		t.Error("the group stays")
	}
	mustReconcile(t, w.groups(), "workers")
}

func TestGroupProblems(t *testing.T) {
	misnamed := newTestGroup(2)
	misnamed.Spec.Name = "Workers"
	invalid := newTestGroup(2)
	invalid.Spec.Labels = v1alpha1.NodeLabels{"a b": "c"}
	tests := []struct {
		name            string
		objects         []client.Object
		reason, message string
	}{
		{"no cluster", []client.Object{newTestGroup(2)}, "ClusterNotFound", `there is no Cluster "muster"`},
		{"another hash", []client.Object{newTestCluster(), misnamed}, "Invalid", `metadata.name: Invalid value: "workers": must be "workers--7a1ec9fe6c", which follows from spec.name "Workers"`},
		{"invalid", []client.Object{newTestCluster(), invalid}, "Invalid", "spec.labels[a b]"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t, test.objects...)
			if result := mustReconcile(t, w.groups(), "workers"); result != (reconcile.Result{}) {
				t.Errorf("tries again: %+v", result)
			}
			wantGroup(t, w.group(t), test.reason, test.message)
			if machines := w.list(t); len(machines) != 0 {
				t.Errorf("%d machines", len(machines))
			}
		})
	}
}

func TestGroupEveryCallFails(t *testing.T) {
	run := func(t *testing.T, w *world, r *groups) (failed bool) {
		t.Helper()
		for range 3 {
			if _, err := reconcileOnce(t, r, "workers"); err != nil {
				if !errors.Is(err, errTest) {
					t.Errorf("error %v", err)
				}
				failed = true
			}
		}
		w.scaleQuietly(t, 1)
		for range 3 {
			if _, err := reconcileOnce(t, r, "workers"); err != nil {
				failed = true
			}
		}
		return failed
	}
	clean := newWorld(t, newTestCluster(), newTestGroup(3))
	run(t, clean, clean.groups())
	for call, count := range clean.faults.calls {
		for nth := 1; nth <= count; nth++ {
			w := newWorld(t, newTestCluster(), newTestGroup(3))
			w.faults.fail(call, nth)
			if !run(t, w, w.groups()) {
				t.Errorf("%s, call %d, failed, and nobody heard of it", call, nth)
			}
			mustReconcile(t, w.groups(), "workers")
			left := 0
			for _, m := range w.list(t) {
				if m.DeletionTimestamp.IsZero() {
					left++
				}
			}
			if left != 1 || len(w.list(t)) > 3 {
				t.Errorf("%s, call %d, failed: %d of %d machines stay", call, nth, left, len(w.list(t)))
			}
		}
	}
}

func (w *world) scaleQuietly(t *testing.T, desired int32) {
	t.Helper()
	_ = w.faults.off(func() error { w.scaleNow(t, desired); return nil })
}

func (w *world) scaleNow(t *testing.T, desired int32) {
	t.Helper()
	group := &v1alpha1.NodeGroup{}
	if err := w.management.Get(t.Context(), groupRequest("workers").NamespacedName, group); err != nil {
		t.Fatal(err)
	}
	group.Spec.ScalingConfig.DesiredSize = desired
	if err := w.management.Update(t.Context(), group); err != nil {
		t.Fatal(err)
	}
}

func TestGroupOfCluster(t *testing.T) {
	other := newTestGroup(1)
	other.Namespace = "other"
	w := newWorld(t, newTestGroup(1), other)
	got := fmt.Sprint(w.groups().ofCluster(t.Context(), newTestCluster()))
	if got != "[muster/workers]" {
		t.Errorf("requests %s", got)
	}
	w.faults.fail("management list *v1alpha1.NodeGroupList", 1)
	if got := w.groups().ofCluster(t.Context(), newTestCluster()); got != nil {
		t.Errorf("requests %v", got)
	}
}

// A group in a namespace without the cluster gets no machines, says why, and goes when it is deleted.
func TestGroupOfNoCluster(t *testing.T) {
	stray := newTestGroup(2)
	stray.Namespace, stray.Finalizers = "default", []string{v1alpha1.FinalizerNodeGroup}
	own := newTestMachine() // of the group of that name in the cluster
	w := newWorld(t, newTestCluster(), stray, newTestGroup(1), own)
	r := w.groups()
	key := client.ObjectKeyFromObject(stray)
	again := func() {
		t.Helper()
		if result, err := r.Reconcile(t.Context(), reconcile.Request{NamespacedName: key}); err != nil || result != (reconcile.Result{}) {
			t.Fatalf("result %+v, error %v", result, err)
		}
	}
	again()
	group := &v1alpha1.NodeGroup{}
	if err := w.management.Get(t.Context(), key, group); err != nil {
		t.Fatal(err)
	}
	wantGroup(t, group, "ClusterNotFound", `namespace default holds no cluster that this service runs: make the group again in namespace muster, of cluster "muster"`)
	if group.Status.Replicas != 0 || len(w.list(t)) != 1 {
		t.Errorf("status %+v, machines %v", group.Status, w.list(t))
	}
	if err := w.management.Delete(t.Context(), group); err != nil {
		t.Fatal(err)
	}
	again()
	if err := w.management.Get(t.Context(), key, group); err == nil {
		t.Error("the deleted group stays")
	}
	again() // it is gone
	if m := w.list(t); len(m) != 1 || !alive(m[0]) {
		t.Errorf("the machine of the cluster's own group: %+v", m)
	}
}

// Machines of another cluster, whose group has the same name, are not counted, not ended as orphans and not brought
// forward.
func TestMachinesOfAnotherCluster(t *testing.T) {
	foreign := newTestMachine()
	foreign.Spec.ClusterName = "Muster"
	w := newWorld(t, newTestCluster(), newTestGroup(0), foreign)
	mustReconcile(t, w.groups(), "workers")
	mustReconcile(t, w.machines(), id)
	if group := w.group(t); group.Status.Replicas != 0 {
		t.Errorf("status %+v", group.Status)
	}
	w.forceAway(t)
	mustReconcile(t, w.groups(), "workers")
	m := w.machine(t)
	if !alive(*m) || len(m.Finalizers) != 0 || m.Status.Phase != "" || len(w.provider.instances) != 0 {
		t.Errorf("machine of another cluster: %+v", m)
	}
	if err := w.management.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// A group whose name is no DNS label: its machines carry the name in their spec and the slug in their labels.
func TestGroupWithASlug(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.Name = "Team_Blue"
	group.Name = v1alpha1.NodeGroupSlug(group.Spec.Name)
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), group.Name)
	mustReconcile(t, w.groups(), group.Name)
	machines := w.list(t)
	if len(machines) != 1 {
		t.Fatalf("%d machines, want 1", len(machines))
	}
	if m := machines[0]; m.Spec.NodeGroup != "Team_Blue" || m.Labels[v1alpha1.LabelNodeGroup] != group.Name {
		t.Errorf("machine %+v", m)
	}
	if got := groupOf(&machines[0]); got != client.ObjectKeyFromObject(group) {
		t.Errorf("the machine's group is %s", got)
	}
	if !w.get(t, w.management, group, group.Name) || group.Status.Replicas != 1 {
		t.Errorf("status %+v", group.Status)
	}
}

// New machines have the key pair that the launch template names, or else remoteAccess of EKS's API.
func TestKeyName(t *testing.T) {
	for name, test := range map[string]struct{ access, template, want string }{
		"nobody names one": {}, "remoteAccess": {"mine", "", "mine"}, "the template": {"", "its", "its"}, "both, as kubectl can": {"mine", "its", "its"},
	} {
		group := newTestGroup(1)
		group.Spec.LaunchTemplate.KeyName = test.template
		if test.access != "" {
			group.Spec.EKS.RemoteAccess = &v1alpha1.NodeGroupRemoteAccess{EC2SSHKey: test.access}
		}
		w := newWorld(t, newTestCluster(), group, newKeyPair("key-1", "its"), newKeyPair("key-2", "mine"))
		mustReconcile(t, w.groups(), "workers")
		machines := w.list(t)
		if len(machines) != 1 || machines[0].Spec.KeyName != test.want {
			t.Fatalf("%s: machines %+v, want one with key pair %q", name, machines, test.want)
		}
		mustReconcile(t, w.machines(), machines[0].Name)
		want := machine.Key{}
		if test.want != "" {
			want = machine.Key{Name: test.want, Public: publicKey}
		}
		if got := w.provider.request.Key; got != want {
			t.Errorf("%s: launched with %+v, want %+v", name, got, want)
		}
	}
}

const publicKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl"

// newKeyPair is a key pair as EC2's API keeps it.
func newKeyPair(id, name string) *v1alpha1.AWSRecord {
	r := &v1alpha1.AWSRecord{ObjectMeta: metav1.ObjectMeta{Name: id}}
	r.Spec.Type = "key-pair"
	r.Spec.Data.Raw = fmt.Appendf(nil, `{"name":%q,"type":"ed25519","fingerprint":"","publicKey":%q}`, name, publicKey)
	return r
}

// A key pair that is gone keeps a machine from its first launch, and says so.
func TestKeyPairGone(t *testing.T) {
	group := newTestGroup(1)
	group.Spec.LaunchTemplate.KeyName = "gone"
	w := newWorld(t, newTestCluster(), group)
	mustReconcile(t, w.groups(), "workers")
	m := w.list(t)[0]
	if _, err := w.machines().Reconcile(t.Context(), reconcile.Request{NamespacedName: client.ObjectKey{Name: m.Name}}); err == nil || !strings.Contains(err.Error(), "the key pair 'gone' does not exist") {
		t.Errorf("%v", err)
	}
}

// New machines have a disk of the size that the group, or else its launch template, asks for. A group whose size changes keeps
// the machines that it has.
func TestDiskSize(t *testing.T) {
	for name, test := range map[string]struct{ group, template, want int32 }{
		"nobody asks": {0, 0, 0}, "the group": {30, 0, 30}, "the template": {0, 40, 40}, "both, as kubectl can": {30, 40, 30},
	} {
		group := newTestGroup(1)
		group.Spec.EKS.DiskSize, group.Spec.LaunchTemplate.DiskSize = test.group, test.template
		w := newWorld(t, newTestCluster(), group)
		mustReconcile(t, w.groups(), "workers")
		machines := w.list(t)
		if len(machines) != 1 || machines[0].Spec.Disk() != test.want {
			t.Fatalf("%s: machines %+v, want one with %d GiB", name, machines, test.want)
		}
		mustReconcile(t, w.machines(), machines[0].Name)
		if got := w.provider.request.DiskSize; got != int(test.want) {
			t.Errorf("%s: launched with %d GiB, want %d", name, got, test.want)
		}
		w.get(t, w.management, group, group.Name)
		if group.Spec.EKS.DiskSize = 50; stale(&machines[0], group) {
			t.Errorf("%s: another size of the group replaces its machines", name)
		}
	}
}
