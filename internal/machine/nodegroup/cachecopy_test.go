// SPDX-License-Identifier: Apache-2.0

package nodegroup

import (
	"context"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/machine/machine"
)

// shared is a client whose lists of Machines share what they point to, as those of a cache do that is asked not to copy.
type shared struct {
	client.Client
	machines []v1alpha1.Machine
}

func (s shared) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	into, ok := list.(*v1alpha1.MachineList)
	if !ok {
		return s.Client.List(ctx, list, opts...)
	}
	into.Items = append(into.Items, s.machines...)
	return nil
}

// A group that ends a machine, and one that has a machine rebooted to repair it, change nothing that the cache has.
func TestWhatACacheHasStaysAsItIs(t *testing.T) {
	for name, prepare := range map[string]func(*v1alpha1.NodeGroup, *v1alpha1.Machine){
		"a machine ends": func(g *v1alpha1.NodeGroup, m *v1alpha1.Machine) {
			g.Spec.AutoScaling = &v1alpha1.AutoScaling{Ending: []string{m.Name}}
		},
		"a machine is rebooted": func(g *v1alpha1.NodeGroup, m *v1alpha1.Machine) {
			g.Status.Repair = &v1alpha1.NodeGroupRepairStatus{Rebooting: []v1alpha1.RepairReboots{{Machine: m.Name, Reboots: 1, Since: metav1.NewTime(newWorld(t).now)}}}
			setCondition(&m.Status.Conditions, newWorld(t).now, metav1.Condition{Type: v1alpha1.ConditionDrained, Status: metav1.ConditionTrue, Reason: reasonDrained})
		},
	} {
		t.Run(name, func(t *testing.T) {
			group, m := newTestGroup(1), newTestMachine()
			m.Annotations = map[string]string{"kept": "as it is"}
			prepare(group, m)
			w := newWorld(t, newTestCluster(), group, m)
			r := w.groups()
			r.management = shared{w.management, w.list(t)}
			before := w.list(t)
			mustReconcile(t, r, "workers")
			if diff := cmp.Diff(before, r.management.(shared).machines); diff != "" {
				t.Errorf("the cache (-was +is):\n%s", diff)
			}
			if diff := cmp.Diff(before, w.list(t)); diff == "" {
				t.Error("nothing was done about the machine")
			}
		})
	}
}

// Of a request for a certificate the cache has what its end is decided by: whose it is, or that it has an answer.
func TestRequestsAreSlim(t *testing.T) {
	m := newTestMachine()
	m.Status.NodeName = nodeName
	request := func(status certificatesv1.CertificateSigningRequestStatus) *certificatesv1.CertificateSigningRequest {
		return &certificatesv1.CertificateSigningRequest{
			Spec: certificatesv1.CertificateSigningRequestSpec{
				Request: []byte("long"), Username: "system:node:" + nodeName, Groups: []string{"system:nodes"}, Extra: map[string]certificatesv1.ExtraValue{"long": {"too"}},
			},
			Status: status,
		}
	}
	denied := []certificatesv1.CertificateSigningRequestCondition{{Type: certificatesv1.CertificateDenied, Status: corev1.ConditionTrue}}
	for name, status := range map[string]certificatesv1.CertificateSigningRequestStatus{
		"pending": {}, "issued": {Certificate: []byte("long")}, "denied": {Conditions: denied},
	} {
		whole, csr := request(status), request(status)
		for range 2 { // a transformed object may be transformed again
			if _, err := slimRequest(csr); err != nil {
				t.Fatal(err)
			}
		}
		if answered(csr) != answered(whole) || !answered(csr) && madeBy(csr, m) != madeBy(whole, m) {
			t.Errorf("%s: answered %t, the machine's %t; want as before", name, answered(csr), madeBy(csr, m))
		}
		if len(csr.Spec.Request)+len(csr.Spec.Extra) > 0 || len(csr.Status.Certificate) > 1 {
			t.Errorf("%s: %+v is kept", name, csr)
		}
	}
}

// A machine whose address another one of no group has by now is not the one whose range a Node gets, whatever it says.
func TestMachinesAreFoundByWhatTheyAreCalled(t *testing.T) {
	own, other := newTestMachine(), newTestMachine()
	own.Status.NodeName = nodeName
	other.Name, other.Status.NodeName = "i-0123456789abcdef9", "ip-192-168-64-12.ec2.internal"
	foreign := newTestMachine()
	foreign.Name, foreign.Spec.ClusterName, foreign.Status.NodeName = "i-0123456789abcdef8", "blue", nodeName
	w := newWorld(t, own, other, foreign)
	for said, want := range map[string]string{
		own.Name: own.Name, other.Name: "", foreign.Name: "", "i-0123456789abcdef7": "", "": "", "../machines": "",
	} {
		node := newTestNode(corev1.ConditionTrue)
		node.Spec.ProviderID = v1alpha1.ProviderID("us-east-1a", said)
		m, err := w.machineNamed(t.Context(), w.management, node)
		if err != nil || (m != nil) != (want != "") || m != nil && m.Name != want {
			t.Errorf("a Node that says it is %q: %+v, %v; want %q", said, m, err, want)
		}
	}
}

// Thousands of machines that come in are counted once each.
func TestComingIsNotQuadratic(t *testing.T) {
	usage := machine.Usage{Subnet: machine.Subnet{ID: "subnet-1"}}
	var all []v1alpha1.Machine
	for i := range 5000 {
		m := newTestMachine()
		m.Name, m.Spec.SubnetID = "i-"+strconv.Itoa(i), "subnet-1"
		if i%5 == 0 {
			usage.Machines = append(usage.Machines, m.Name)
		}
		all = append(all, *m, *m) // seen by the cache and by the API server
	}
	if n := coming(usage, all); n != 4000 {
		t.Errorf("%d are coming, want 4000", n)
	}
}
