// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// byRole makes a node one that joined by its machine's role: its kubeconfig names a program that prints a token, and it
// has no client certificate.
func (w *world) byRole() {
	w.t.Helper()
	w.bearer = "k8s-aws-v1.test"
	program := filepath.Join(filepath.Dir(w.kubeconfig), "authenticator")
	write(w.t, program, fmt.Appendf(nil, `#!/bin/sh
echo '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": {"token": %q}}'
`, w.bearer), 0o700)
	raw, err := os.ReadFile(w.kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(raw), "users:")
	write(w.t, w.kubeconfig, fmt.Appendf([]byte(head), `users:
- name: u
  user: {exec: {apiVersion: client.authentication.k8s.io/v1, command: %q, args: [token], interactiveMode: Never}}
`, program), 0o600)
	if err := os.Remove(filepath.Join(w.dir, Client.link())); err != nil {
		w.t.Fatal(err)
	}
}

func TestANodeThatJoinedByRoleHasItsServingCertificateAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	if ByRole(w.kubeconfig) || ByRole(filepath.Join(w.dir, "none")) || len(ReadNode(w.kubeconfig, w.dir, time.Now())) != 2 {
		t.Error("a node with a certificate joined by its role")
	}
	w.byRole()
	reports := ReadNode(w.kubeconfig, w.dir, time.Now())
	if len(reports) != 1 || reports[0].Kind != Serving || len(reports[0].Problems) != 0 {
		t.Errorf("reports are %+v", reports)
	}
}

func TestRotateByRole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.byRole()
	c := w.config()
	if _, err := Rotate(t.Context(), c); err == nil || !strings.Contains(err.Error(), "has no client certificate") || len(w.requests) != 0 {
		t.Errorf("both were replaced: %v, %d requests", err, len(w.requests))
	}
	c.Kinds = []Kind{Serving}
	rotated, err := Rotate(t.Context(), c)
	if err != nil || len(rotated) != 1 || rotated[0].Kind != Serving || len(w.requests) != 1 {
		t.Fatalf("replaced %+v, %v", rotated, err)
	}
	if err := Assigned(t.Context(), c, netip.MustParseAddr("192.168.64.11"), netip.MustParseAddr("192.168.64.99")); err != nil {
		t.Errorf("asking for an address: %v", err)
	}
	_, node, err := Connection(t.Context(), w.kubeconfig, w.dir, time.Now())
	if err != nil || node != nodeName {
		t.Errorf("the node is %q, %v", node, err)
	}
	w.user = "arn:aws:iam::000000000000:user/admin"
	if _, _, err := Connection(t.Context(), w.kubeconfig, w.dir, time.Now()); err == nil || !strings.Contains(err.Error(), "which is not a node") {
		t.Errorf("somebody else: %v", err)
	}
	w.bearer = "k8s-aws-v1.other"
	if _, _, err := Connection(t.Context(), w.kubeconfig, w.dir, time.Now()); err == nil || !strings.Contains(err.Error(), "whom it takes the machine's role for") {
		t.Errorf("a role that is not let in: %v", err)
	}
}
