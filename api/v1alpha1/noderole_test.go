// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestClusterNodeRole(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", 52)
	for namespace, want := range map[string]string{
		"blue":                "muster-node-blue",
		ClusterSlug("muster"): "muster-node-muster",
		ClusterSlug("Blue_1"): "muster-node-blue-1--20c6c1d917",
		long:                  "muster-node-" + long,
		long + "a":            "muster-node-" + strings.Repeat("a", 40) + "--abe346a725",
		strings.Repeat("a", 39) + "-" + long[:15]: "muster-node-" + strings.Repeat("a", 39) + "--f4eb309628",
	} {
		if got := ClusterNodeRole(namespace); got != want || len(got) > 64 {
			t.Errorf("%s: %s (%d characters), want %s", namespace, got, len(got), want)
		}
	}
	if ClusterNodeRole(long+"a") == ClusterNodeRole(long+"b") {
		t.Error("two clusters have one role")
	}
}

func TestRoleOfANodeGroup(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		spec NodeGroupSpec
		want string
	}{
		"a local group":                {NodeGroupSpec{Provider: ProviderLocal}, "muster-node-blue"},
		"a local group of a role":      {NodeGroupSpec{Provider: ProviderLocal, NodeRole: "workers"}, "workers"},
		"one that names the account's": {NodeGroupSpec{Provider: ProviderLocal, NodeRole: AccountNodeRole}, "muster-node"},
		"by token":                     {NodeGroupSpec{Provider: ProviderLocal, Bootstrap: BootstrapToken}, ""},
		"a simulated group":            {NodeGroupSpec{Provider: ProviderSimulated}, ""},
	} {
		g := NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "blue"}, Spec: test.spec}
		if got := g.Role(); got != test.want || g.Spec.JoinsByRole() != (test.want != "") {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
