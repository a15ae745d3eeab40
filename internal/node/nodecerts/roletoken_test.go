// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"os"
	"path/filepath"
	"testing"
)

// A token that was made here takes no program.
func TestTokenConnection(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.byRole()
	if err := os.Remove(filepath.Join(filepath.Dir(w.kubeconfig), "authenticator")); err != nil {
		t.Fatal(err)
	}
	config, node, err := TokenConnection(t.Context(), w.kubeconfig, w.bearer)
	if err != nil || node != nodeName || config.BearerToken != w.bearer {
		t.Errorf("the node is %q, %v", node, err)
	}
	if _, _, err := TokenConnection(t.Context(), w.kubeconfig, "k8s-aws-v1.another"); err == nil {
		t.Error("any token is good")
	}
	if _, _, err := TokenConnection(t.Context(), filepath.Join(w.dir, "none"), w.bearer); err == nil {
		t.Error("no kubeconfig is missed")
	}
}
