// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
)

// newTestInstance is a machine that EC2's RunInstances made, whose user data names the cluster.
func newTestInstance() *v1alpha1.Machine {
	m := newTestMachine()
	m.Labels = nil
	m.Spec = v1alpha1.MachineSpec{
		ClusterName: "muster", Provider: v1alpha1.ProviderLocal, InstanceType: "m5.large", UserData: []byte("its own"),
		MetadataOptions: &v1alpha1.MetadataOptions{HTTPPutResponseHopLimit: 2}, DiskSize: 30,
	}
	return m
}

// A machine without a group boots with its own user data, and is given no bootstrap token, which would let anybody in
// who may make instances.
func TestInstanceHasItsOwnUserData(t *testing.T) {
	w := newWorld(t, newTestInstance())
	mustReconcile(t, w.machines(), id)
	want(t, w.machine(t), v1alpha1.MachineJoining, "Joining")
	if diff := cmp.Diff([]string{"its own"}, w.provider.userData); diff != "" {
		t.Errorf("user data (-want +got):\n%s", diff)
	}
	if got := w.tokens(t); len(got) != 0 {
		t.Errorf("it has %d bootstrap tokens", len(got))
	}
	if r := w.provider.request; r.Type != "m5.large" || r.HopLimit != 2 || r.DiskSize != 30 || r.Cluster != "muster" {
		t.Errorf("launched as %+v", r)
	}
}

// A Node whose machine is gone may stay for a while, by a finalizer. A new machine of that name would take it for its own.
func TestInstanceGetsNoNameOfANode(t *testing.T) {
	held, own, elsewhere := newTestNode("True"), newTestNode("True"), newTestNode("True")
	held.Name, held.Spec.ProviderID, held.Finalizers = "ip-172-31-0-9.ec2.internal", v1alpha1.ProviderID("us-east-1a", "i-0123456789abcdef9"), []string{"karpenter.sh/termination"}
	own.Name, own.UID = "ip-172-31-0-8.ec2.internal", "own"
	elsewhere.Name, elsewhere.UID, elsewhere.Spec.ProviderID = "by-hand", "by-hand", ""
	w := newWorld(t, newTestInstance(), held, own, elsewhere)
	mustReconcile(t, w.machines(), id)
	if got := fmt.Sprint(w.provider.request.Avoid); got != "[172.31.0.9]" {
		t.Errorf("it is to avoid %s", got)
	}
}

// No group takes a machine without one for its own, nor for an orphan.
func TestInstanceIsOfNoGroup(t *testing.T) {
	w := newWorld(t, newTestInstance())
	mustReconcile(t, w.machines(), id)
	groups := w.groups()
	if err := groups.endOrphans(t.Context(), groupOf(w.machine(t))); err != nil {
		t.Fatal(err)
	}
	if m := w.machine(t); !m.DeletionTimestamp.IsZero() {
		t.Error("the machine is taken for an orphan")
	}
}
