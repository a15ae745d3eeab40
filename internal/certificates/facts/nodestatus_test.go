// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"net/netip"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/certificates/policy"
)

func TestNodeStatusSaysWhatNodesSay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		node := &corev1.Node{
			ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"eks.amazonaws.com/nodegroup": "mine"}},
			Spec:       corev1.NodeSpec{ProviderID: "aws:///z/i-1"},
			Status: corev1.NodeStatus{Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}, {Type: corev1.NodeHostName, Address: "N"}, {Type: corev1.NodeHostName, Address: "10.0.0.2"},
			}},
		}
		client, e := fake.NewClientset(node), &ear{}
		s, err := NewNodeStatus(WatchConfig{Objects: NodeStatuses(client), OnChange: e.hear, Logger: e.logger()})
		if err != nil {
			t.Fatal(err)
		}
		running(t, s)
		elapse(time.Second)
		// The group and the identity that it claims are not believed even here.
		if diff := cmp.Diff(policy.Know(made("n", "n", "n", "10.0.0.1 10.0.0.2"), "nodeStatus", time.Now()), s.MachineOfNode("n"), cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if f := s.MachineOfNode("m"); f.State != policy.Absent {
			t.Errorf("no node: %+v", f)
		}
		e.heard()
		node = node.DeepCopy()
		node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady}}
		update := func() {
			if _, err := client.CoreV1().Nodes().Update(t.Context(), node, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		if update(); len(e.heard()) > 0 {
			t.Error("a heartbeat was told")
		}
		node = node.DeepCopy()
		node.Status.Addresses = node.Status.Addresses[:1]
		if update(); !cmp.Equal(e.heard(), []Change{{Machines: []string{"n"}, Nodes: []string{"n"}, Names: []string{"10.0.0.1", "10.0.0.2", "n"}}}) {
			t.Error("a change was not told")
		}
	})
}
