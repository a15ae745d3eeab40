// SPDX-License-Identifier: Apache-2.0

package hostnode

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/token"
)

// The node was deleted, and another machine has joined under its name: that one keeps its pods and its Node.
func TestLeaveSparesAnothersNode(t *testing.T) {
	for name, tc := range map[string]struct {
		machine string
		spared  bool
	}{
		"another machine":                    {"ffff", true},
		"this one, which registered anew":    {"0123", false},
		"a kubelet that tells no machine ID": {"", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.write("/etc/machine-id", "0123\n")
			mustRun(t, w.join)
			nodes := w.cluster.CoreV1().Nodes()
			if err := nodes.Delete(t.Context(), nodeName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "another"}}
			node.Status.NodeInfo.MachineID = tc.machine
			if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.host().Leave(t.Context(), LeaveRequest{DrainTimeout: 5 * time.Second}); err != nil { // as the node itself
				t.Fatal(err)
			}
			got, err := nodes.Get(t.Context(), nodeName, metav1.GetOptions{})
			if err != nil || got.Spec.Unschedulable == tc.spared || strings.Contains(w.said(), "is another machine by now") != tc.spared {
				t.Errorf("node %+v, %v; said:\n%s", got, err, w.said())
			}
		})
	}
}

// A token that others may join by, too, is not this host's to delete.
func TestLeaveDeletesTheNodesOwnTokenAlone(t *testing.T) {
	for name, tc := range map[string]struct {
		scopes  []token.Scope
		deleted bool
	}{
		"its own":        {[]token.Scope{{Kind: token.ScopeName, Value: nodeName}}, true},
		"anybody's":      {nil, false},
		"of all workers": {[]token.Scope{{Kind: token.ScopePattern, Value: "worker-*"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			b := token.Bootstrap{Token: w.request().Token, Usages: []string{token.UsageSigning, token.UsageAuthentication}, Groups: []string{token.DefaultGroup}}
			if err := b.Bind(tc.scopes...); err != nil {
				t.Fatal(err)
			}
			secret, err := b.Secret()
			if err != nil {
				t.Fatal(err)
			}
			secrets := w.cluster.CoreV1().Secrets(secret.Namespace)
			if _, err := secrets.Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			mustRun(t, w.join)
			mustRun(t, w.leave)
			_, err = secrets.Get(t.Context(), secret.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) != tc.deleted || strings.Contains(w.said(), "is not bound to this node alone") == tc.deleted || strings.Contains(w.said(), "0123456789abcdef") {
				t.Errorf("%v; said:\n%s", err, w.said())
			}
		})
	}
}
