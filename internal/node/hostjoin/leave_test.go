// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/token"
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
		"another's":      {[]token.Scope{{Kind: token.ScopeName, Value: "worker-9"}}, false},
		"of a machine":   {[]token.Scope{{Kind: token.ScopeMachine, Value: "worker-9"}}, false},
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
			if apierrors.IsNotFound(err) != tc.deleted || strings.Contains(w.said(), "is not bound to this node's name") == tc.deleted || strings.Contains(w.said(), "0123456789abcdef") {
				t.Errorf("%v; said:\n%s", err, w.said())
			}
		})
	}
}

// A certificate that is lost, or expired, is not one that never was: such a node has pods, and only an administrator
// can drain it.
func TestLeaveDrainsWithoutTheNodesCertificate(t *testing.T) {
	for name, breaks := range map[string]func(*world){
		"a rotation that was killed half way": func(w *world) { mustRemove(w.t, w.at(clientCertificate)) },
		"no authority":                        func(w *world) { mustRemove(w.t, w.at(authority)) },
		"a certificate that is damaged":       func(w *world) { mustTruncate(w.t, w.at(clientCertificate)) },
		"a certificate that has expired":      func(w *world) { w.now = time.Now().Add(48 * time.Hour) },
		"a server that does not take it": func(w *world) {
			w.cluster.PrependReactor("get", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, nil, apierrors.NewUnauthorized("Unauthorized")
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			mustRun(t, w.join)
			node, err := w.cluster.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			admin := fake.NewClientset(node)
			breaks(w)
			before := w.tree()
			_, err = w.host().Leave(t.Context(), LeaveRequest{DrainTimeout: 5 * time.Second})
			if err == nil || !strings.Contains(err.Error(), "--kubeconfig") || !strings.Contains(err.Error(), "--force") {
				t.Errorf("it left without a drain: %v; said:\n%s", err, w.said())
			}
			compare(t, "after a leave that was refused", before, w.tree())
			if _, err := w.host().Leave(t.Context(), LeaveRequest{DrainTimeout: 5 * time.Second, Admin: admin}); err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(admin.Actions(), func(a clienttesting.Action) bool { return a.Matches("patch", "nodes") }) {
				t.Errorf("the administrator did not cordon the node; said:\n%s", w.said())
			}
			if _, err := admin.CoreV1().Nodes().Get(t.Context(), nodeName, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Node is still there: %v", err)
			}
		})
	}
}

// A kubelet goes on when its join is killed, and may register the host when its leave has begun: that Node goes, and no
// other machine's.
func TestLeaveDeletesANodeThatRegisteredUnseen(t *testing.T) {
	for machine, deleted := range map[string]bool{"0123": true, "ffff": false, "": false} {
		w := newWorld(t)
		w.write("/etc/machine-id", "0123\n")
		w.units.Before = func(what string) error {
			if what == "restart "+kubeletUnit {
				return errCrash
			}
			return nil
		}
		if err := w.join(); !errors.Is(err, errCrash) {
			t.Fatal(err)
		}
		w.units.Before = nil
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "unseen"}}
		node.Status.NodeInfo.MachineID = machine
		nodes := w.cluster.CoreV1().Nodes()
		if _, err := nodes.Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		mustRun(t, w.leave)
		if _, err := nodes.Get(t.Context(), nodeName, metav1.GetOptions{}); apierrors.IsNotFound(err) != deleted {
			t.Errorf("machine ID %q: %v; said:\n%s", machine, err, w.said())
		}
	}
}

// A leave that had drained the node and was killed while it removed files goes on as the node, too, whose certificate
// is gone by then.
func TestLeaveGoesOnWithoutTheCertificate(t *testing.T) {
	w := newWorld(t)
	start := w.tree()
	mustRun(t, w.join)
	alone := func() error {
		_, err := w.host().Leave(t.Context(), LeaveRequest{DrainTimeout: 5 * time.Second})
		return err
	}
	for w.crashAt = 1; ; w.crashAt++ {
		if err := alone(); err == nil {
			break
		} else if !errors.Is(err, errCrash) {
			t.Fatalf("killed at change %d of the last, then: %v", w.crashAt-1, err)
		}
	}
	compare(t, "after a leave that was killed again and again", start, w.tree())
}

func mustRemove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}

func mustTruncate(t *testing.T, path string) {
	t.Helper()
	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
}

// A join that is run again on a node that has its certificate uses no token: the ledger goes on to name the one that
// the host came in by.
func TestTheLedgerKeepsTheTokenThatWasUsed(t *testing.T) {
	w := newWorld(t)
	mustRun(t, w.join)
	other, err := token.Parse(otherToken)
	if err != nil {
		t.Fatal(err)
	}
	again := w.request()
	again.Token = other
	if _, err := w.host().Join(t.Context(), again); err != nil {
		t.Fatal(err)
	}
	if l, err := ReadLedger(w.root); err != nil || l.TokenID != "abcdef" {
		t.Errorf("the ledger names token %q, error %v", l.TokenID, err)
	}
}

// A kubelet leaves its chains behind; the host had none of them.
func TestLeaveRemovesTheKubeletsChains(t *testing.T) {
	for _, has := range []bool{true, false} {
		w := newWorld(t)
		if has {
			if err := os.MkdirAll(filepath.Join(w.root, "usr/sbin"), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(w.root, "usr/sbin/iptables"), nil, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		mustRun(t, w.join)
		mustRun(t, w.leave)
		for _, want := range []string{"iptables -w -D INPUT -j KUBE-FIREWALL", "iptables -w -t filter -X KUBE-FIREWALL", "iptables -w -t nat -X KUBE-KUBELET-CANARY"} {
			if got := slices.Contains(w.run, want); got != has {
				t.Errorf("the host has iptables: %t; %s: %t", has, want, got)
			}
		}
	}
}
