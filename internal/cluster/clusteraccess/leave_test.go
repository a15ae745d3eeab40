// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	accessv1alpha1 "muster.dev/muster/api/access/v1alpha1"
	iamv1alpha1 "muster.dev/muster/api/iamauthenticator/v1alpha1"
	"muster.dev/muster/api/v1alpha1"
)

func machineOf(cluster, profile string) *v1alpha1.Machine {
	return &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1alpha1.MachineSpec{ClusterName: cluster, InstanceProfile: profile}}
}

func groupOf(namespace, role string) *v1alpha1.NodeGroup {
	return &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "workers"}, Spec: v1alpha1.NodeGroupSpec{Name: "workers", Provider: v1alpha1.ProviderLocal, NodeRole: role}}
}

// The entry of the role that all clusters had goes when nobody in the cluster has the role any more.
func TestAccountsRoleLeaves(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		objects []client.Object
		stays   string // why
	}{
		"machines have the new role":            {[]client.Object{machineOf("blue", "muster-node-blue"), groupOf("blue", "")}, ""},
		"machines have tokens":                  {[]client.Object{machineOf("blue", ""), groupOf("blue", "")}, ""},
		"another cluster's machine has it":      {[]client.Object{machineOf("green", "muster-node"), groupOf("green", "")}, ""},
		"another cluster's group names it":      {[]client.Object{groupOf("green", "muster-node")}, ""},
		"a machine has it":                      {[]client.Object{machineOf("blue", "muster-node"), groupOf("blue", "")}, "machine i-1 has the instance profile muster-node"},
		"a machine has it by another profile":   {[]client.Object{machineOf("blue", "mine"), iamProfile("mine", "AROA1")}, "machine i-1 has the instance profile mine"},
		"a machine has a profile that is gone":  {[]client.Object{machineOf("blue", "gone")}, "machine i-1 has the instance profile gone"},
		"a machine of no cluster has it":        {[]client.Object{machineOf("", "muster-node")}, "machine i-1 has the instance profile muster-node"},
		"a group without machines names it":     {[]client.Object{groupOf("blue", "muster-node")}, "node group workers of cluster blue has the role"},
		"a group without machines names an ARN": {[]client.Object{groupOf("blue", accountRole)}, "node group workers of cluster blue has the role"},
	} {
		for _, mode := range []v1alpha1.AuthenticationMode{v1alpha1.AuthenticationAPI, v1alpha1.AuthenticationConfigMap} {
			n := ofBefore(t, mode, test.objects...)
			var said []string
			say := func(message string) { said = append(said, message) }
			if why, err := n.leave(t.Context(), say); err != nil || why == "" || len(said) != 0 {
				t.Errorf("%s: before it has its own role: %q, %v, %v", name, why, err, said)
			}
			if err := n.first(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				if why, err := n.leave(t.Context(), say); err != nil || why != test.stays {
					t.Errorf("%s: %q, %v", name, why, err)
				}
			}
			var mappings iamv1alpha1.IAMIdentityMappingList
			if err := n.Access.cluster.List(t.Context(), &mappings); err != nil {
				t.Fatal(err)
			}
			want := 1
			if test.stays != "" {
				want = 2
			}
			if left := len(entriesOf(t, n.Access)) + len(mappings.Items); left != want || len(said) != 2-want || (recordOf(t, n.Access)[formerRole] == "") != (test.stays == "") {
				t.Errorf("%s, %s: %d are left; said %q; record %v", name, mode, left, said, recordOf(t, n.Access))
			}
			if len(said) > 0 && !strings.HasSuffix(said[0], " of "+accountRole+": no machine and no node group of the cluster has this role any more, its nodes have the role muster-node-blue") {
				t.Errorf("said %q", said)
			}
		}
	}
}

// Entries that somebody wrote by hand stay, also entries that they write later.
func TestEntriesByHandStay(t *testing.T) {
	t.Parallel()
	n := ofBefore(t, v1alpha1.AuthenticationAPI)
	if err := n.first(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	entry := &accessv1alpha1.AccessEntry{}
	if err := n.Access.cluster.Get(t.Context(), client.ObjectKey{Name: "muster-node"}, entry); err != nil {
		t.Fatal(err)
	}
	entry.Spec.KubernetesGroups = []string{"mine"}
	if err := n.Access.cluster.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	fail := func(message string) { t.Error(message) }
	if why, err := n.leave(t.Context(), fail); err != nil || why != "" || len(entriesOf(t, n.Access)) != 2 {
		t.Errorf("%q, %v, %v", why, err, entriesOf(t, n.Access))
	}
	entry.Spec.KubernetesGroups = nil
	if err := n.Access.cluster.Update(t.Context(), entry); err != nil {
		t.Fatal(err)
	}
	if why, err := n.leave(t.Context(), fail); err != nil || why != "" || len(entriesOf(t, n.Access)) != 2 {
		t.Errorf("the second time: %q, %v, %v", why, err, entriesOf(t, n.Access))
	}
	if _, err := n.Prepare(t.Context(), "muster-node"); err != nil {
		t.Errorf("a group that names it: %v", err)
	}
}

// A role that was deleted lets nobody in.
func TestAccountsRoleThatWasDeleted(t *testing.T) {
	t.Parallel()
	n := ofBefore(t, v1alpha1.AuthenticationAPI, machineOf("blue", "muster-node"))
	if err := n.first(t.Context(), false); err != nil {
		t.Fatal(err)
	}
	management, ok := n.management.(client.Client)
	if !ok {
		t.Fatal("not a client")
	}
	if err := management.Delete(t.Context(), iamRole("/", "muster-node", "AROA1")); err != nil {
		t.Fatal(err)
	}
	if why, err := n.leave(t.Context(), func(string) {}); err != nil || why != "" || len(entriesOf(t, n.Access)) != 1 {
		t.Errorf("%q, %v, %v", why, err, entriesOf(t, n.Access))
	}
}
