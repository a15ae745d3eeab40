// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/machine/machine"
)

// launched is a machine of a cluster with the name that it was given.
func launched(cluster, id, name string) *v1alpha1.Machine {
	m := newTestMachine()
	m.Name, m.Spec.ClusterName, m.Status.NodeName = id, cluster, name
	return m
}

func TestNodesThatPassForMachinesAreDeleted(t *testing.T) {
	const other, otherName = "i-0123456789abcdef9", "ip-10-0-0-9.eu-west-1.compute.internal"
	node := func(name, providerID string) *corev1.Node {
		n := host(name)
		n.Spec.ProviderID = providerID
		return n
	}
	own := v1alpha1.ProviderID("us-east-1a", id)
	hosts := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: policyconfig.HostsNamespace, Name: policyconfig.HostsConfigMap},
		Data:       map[string]string{"machines.yaml": "machines:\n- {id: host, nodeName: " + otherName + ", addresses: [10.0.0.9]}\n"},
	}
	for _, tc := range []struct {
		name    string
		node    *corev1.Node
		objects []client.Object
		stays   bool
	}{
		{"a machine", node(nodeName, own), []client.Object{launched("muster", id, nodeName)}, true},
		{"a machine that has not told its provider id", node(nodeName, ""), []client.Object{launched("muster", id, nodeName)}, true},
		{"a machine that is being deleted", node(nodeName, own), []client.Object{func() client.Object {
			m := launched("muster", id, nodeName)
			m.Finalizers, m.DeletionTimestamp = []string{v1alpha1.FinalizerMachine}, &metav1.Time{}
			now := metav1.Now()
			m.DeletionTimestamp = &now
			return m
		}()}, true},
		{"a machine of another cluster", node(otherName, v1alpha1.ProviderID("us-east-1a", other)), []client.Object{launched("blue", other, otherName)}, false},
		{"without a provider id", node(otherName, ""), []client.Object{launched("blue", other, otherName)}, false},
		{"with the provider id of a machine of this cluster", node(otherName, own), []client.Object{launched("blue", other, otherName), launched("muster", id, nodeName)}, false},
		{"under another name, with its own provider id", node("worker-1", v1alpha1.ProviderID("us-east-1a", other)), []client.Object{launched("blue", other, otherName)}, false},
		{"under its id", node(other, ""), []client.Object{launched("blue", other, otherName)}, false},
		{"under its id with a domain", node(other+".ec2.internal", ""), []client.Object{launched("blue", other, otherName)}, false},
		{"a machine's name that no machine has", node("ip-10-0-0-1.ec2.internal", ""), nil, false},
		{"a machine that is named by its id", node(id, own), []client.Object{launched("muster", id, nodeName)}, true},
		{"an instance of no cluster, which entries let in", node(otherName, v1alpha1.ProviderID("us-east-1a", other)), []client.Object{launched("", other, otherName)}, true},
		{"a host that was registered", node(otherName, ""), []client.Object{hosts}, true},
		{"a host of another name, beside it", node("ip-10-0-0-8.eu-west-1.compute.internal", ""), []client.Object{hosts}, false},
		{"people's own", node("worker-1", ""), nil, true},
		{"people's own with the address in its name", node("ip-10-0-0-1.example.org", ""), nil, true},
		{"people's own without a domain", node("ip-10-0-0-1", ""), nil, true},
		{"another cloud's", node("worker-1", "gce:///us-east-1a/"+other), nil, true},
		{"what tests make", node("e2e-fake-node-abcde", ""), nil, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, append(tc.objects, tc.node)...)
			r := &strangers{parts: w.parts}
			for range 2 { // each time that it appears
				mustReconcile(t, r, tc.node.Name)
				if got := w.get(t, w.cluster, &corev1.Node{}, tc.node.Name); got != tc.stays {
					t.Fatalf("it is there: %t, want %t", got, tc.stays)
				}
				want := "Warning NotAMachine: deleted the Node"
				if told := len(w.events.list) == 1 && strings.HasPrefix(w.events.list[0], want); told == tc.stays || tc.stays && len(w.events.list) > 0 {
					t.Errorf("the Events are %q", w.events.list)
				}
				w.events.list = nil
				if !tc.stays {
					tc.node.ResourceVersion = ""
					if err := w.cluster.Create(t.Context(), tc.node); err != nil {
						t.Fatal(err)
					}
				}
			}
		})
	}
}

// A machine may have registered before its name is in its status, or in a cache.
func TestANodeIsNotDeletedTooEarly(t *testing.T) {
	unnamed := launched("muster", id, "")
	w := newWorld(t, unnamed, host(nodeName))
	w.provider.instances = []machine.Instance{{ID: id, PrivateDNSName: nodeName}}
	mustReconcile(t, &strangers{parts: w.parts}, nodeName)
	if !w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Error("the Node of a machine was deleted whose name was not told yet")
	}
	for _, call := range []string{"Get", "management list *v1alpha1.MachineList", "cluster get *v1.ConfigMap"} {
		w := newWorld(t, launched("muster", id, ""), host(nodeName))
		w.faults.left[call] = 1
		r := &strangers{parts: w.parts}
		if _, err := reconcileOnce(t, r, nodeName); err == nil || !w.get(t, w.cluster, &corev1.Node{}, nodeName) {
			t.Errorf("%s fails: %v", call, err)
		}
		mustReconcile(t, r, nodeName)
		if w.get(t, w.cluster, &corev1.Node{}, nodeName) {
			t.Errorf("%s failed once, and the Node stays", call)
		}
	}
	live := newWorld(t, launched("muster", id, nodeName))
	w = newWorld(t, host(nodeName))
	w.managementLive = live.management
	mustReconcile(t, &strangers{parts: w.parts}, nodeName)
	if !w.get(t, w.cluster, &corev1.Node{}, nodeName) {
		t.Error("the Node of a machine was deleted that a cache did not show yet")
	}
}

// A Node that was made in the last moment of its machine is looked at when the machine is gone.
func TestTheNodeOfAMachineThatIsGoneIsLookedAt(t *testing.T) {
	w := newWorld(t)
	for what, tc := range map[string]struct {
		object client.Object
		want   []reconcile.Request
	}{
		"a machine":                    {launched("muster", id, nodeName), []reconcile.Request{request(nodeName)}},
		"a machine of another cluster": {launched("blue", id, nodeName), nil},
		"a machine without a name yet": {launched("muster", id, ""), nil},
		"another object":               {host(nodeName), nil},
	} {
		if diff := cmp.Diff(tc.want, w.nodeLeftBehind(t.Context(), tc.object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", what, diff)
		}
	}
	w.addNode(t, corev1.ConditionTrue)
	if diff := cmp.Diff([]reconcile.Request{request(nodeName)}, w.nodeLeftBehind(t.Context(), launched("muster", id, ""))); diff != "" {
		t.Errorf("a machine whose name nobody knows (-want +got):\n%s", diff)
	}
}
