// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/policyconfig"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/machine/nodegroup"
)

const (
	accountRole = "arn:aws:iam::" + account + ":role/muster-node"
	clusterRole = accountRole + "-blue"
)

// ofBefore is a cluster of an earlier version: muster-node has an entry, and the record says that it was made. The
// roles are in the management plane, but the identity service has the account's only.
func ofBefore(t *testing.T, mode v1alpha1.AuthenticationMode, objects ...client.Object) *NodeRoles {
	t.Helper()
	n := &NodeRoles{Access: newAccess(t, mode, append(objects,
		&v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, iamRole("/", "muster-node", "AROA1"), iamProfile("muster-node", "AROA1"),
		iamRole("/", "muster-node-blue", "AROA2"), iamProfile("muster-node-blue", "AROA2"))...)}
	role := iam.Role{ID: "AROA1", Account: account, Path: "/", Name: "muster-node", MaxSession: time.Hour, Grants: iam.Grants{Attached: []string{"arn:aws:iam::aws:policy/ReadOnlyAccess"}}}
	if err := n.store().Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	if err := n.nodes(t.Context(), iamRole("/", "muster-node", "AROA1")); err != nil {
		t.Fatal(err)
	}
	record := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: policyconfig.HostsNamespace, Name: firstAccess}, Data: map[string]string{"nodeRole": accountRole, firstMode: string(mode)},
	}
	if err := n.Access.cluster.Create(t.Context(), record); err != nil {
		t.Fatal(err)
	}
	return n
}

func recordOf(t *testing.T, a Access) map[string]string {
	t.Helper()
	record, _, err := a.record(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return record.Data
}

// An upgrade gives a cluster its own role beside the one that its machines have.
func TestClusterOfBeforeGetsItsOwnRole(t *testing.T) {
	t.Parallel()
	n := ofBefore(t, v1alpha1.AuthenticationAPI)
	for range 2 {
		if err := n.first(t.Context(), true); err != nil {
			t.Fatal(err)
		}
	}
	entries := entriesOf(t, n.Access)
	if len(entries) != 2 || entries["muster-node"].PrincipalID != "AROA1" || entries["muster-node-blue"].PrincipalARN != clusterRole || entries["muster-node-blue"].Type != "EC2_LINUX" {
		t.Errorf("entries %v", entries)
	}
	if record := recordOf(t, n.Access); record[formerRole] != accountRole || record[ownRole] != clusterRole {
		t.Errorf("record %v", record)
	}
	state, err := n.store().State()
	if err != nil {
		t.Fatal(err)
	}
	if role, ok := state.Role(account, "muster-node-blue"); !ok || len(role.Attached) != 1 {
		t.Errorf("it does not have the policies of the role of before: %+v", role)
	}
	if profile, err := n.Prepare(t.Context(), "muster-node-blue"); profile != "muster-node-blue" || err != nil {
		t.Errorf("new machines get profile %q, %v", profile, err)
	}
}

// The first node group may come before First has run.
func TestPrepareMakesTheClustersRole(t *testing.T) {
	t.Parallel()
	n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPI, iamAdmin(), iamRole("/", "muster-node-blue", "AROA2"), iamProfile("muster-node-blue", "AROA2"))}
	if profile, err := n.Prepare(t.Context(), "muster-node-blue"); profile != "muster-node-blue" || err != nil {
		t.Fatalf("%q, %v", profile, err)
	}
	if err := n.first(t.Context(), true); err != nil || len(entriesOf(t, n.Access)) != 2 {
		t.Errorf("%v, %v", err, entriesOf(t, n.Access))
	}
	if record := recordOf(t, n.Access); record[ownRole] != clusterRole || record[formerRole] != "" {
		t.Errorf("record %v", record)
	}
	n.store = func() identityservice.Store { return nil }
	if _, err := n.Prepare(t.Context(), "muster-node-blue"); err != nil {
		t.Errorf("once it is recorded: %v", err)
	}
}

func TestRoleThatCannotBeMade(t *testing.T) {
	t.Parallel()
	n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPI, iamAdmin(), iamRole("/", "muster-node-blue", "AROA2"))}
	if err := n.store().Create(t.Context(), iam.Role{ID: "AROA2", Account: account, Path: "/", Name: "muster-node-blue", MaxSession: time.Hour}); err != nil {
		t.Fatal(err)
	}
	_, err := n.Prepare(t.Context(), "muster-node-blue")
	if problem, ok := errors.AsType[*nodegroup.RoleProblem](err); !ok || !strings.Contains(problem.Message, "was not made for the nodes of the cluster; delete that role") {
		t.Errorf("somebody's role: %v", err)
	}
	if err := n.first(t.Context(), false); err == nil || len(entriesOf(t, n.Access)) != 0 {
		t.Errorf("somebody's role is let in: %v, %v", err, entriesOf(t, n.Access))
	}
	n.store = func() identityservice.Store { return nil }
	if _, err := n.Prepare(t.Context(), "muster-node-blue"); !errors.Is(err, nodegroup.ErrNotYet) {
		t.Errorf("while the identity service is away: %v", err)
	}
}

func TestRemoveOwnRole(t *testing.T) {
	t.Parallel()
	if err := RemoveOwnRole(t.Context(), nil, nil, "blue"); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("while the identity service is away: %v", err)
	}
	other := metav1.ObjectMeta{Namespace: "green", Name: "workers"}
	for name, test := range map[string]struct {
		object client.Object
		stays  bool
	}{
		"nobody has it":                    {&v1alpha1.NodeGroup{ObjectMeta: other, Spec: v1alpha1.NodeGroupSpec{Provider: v1alpha1.ProviderLocal}}, false},
		"a group of another cluster":       {&v1alpha1.NodeGroup{ObjectMeta: other, Spec: v1alpha1.NodeGroupSpec{Provider: v1alpha1.ProviderLocal, NodeRole: clusterRole}}, true},
		"a machine of another cluster":     {&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1alpha1.MachineSpec{ClusterName: "green", InstanceProfile: "muster-node-blue"}}, true},
		"another cluster's machine's role": {&v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1alpha1.MachineSpec{ClusterName: "green", InstanceProfile: "muster-node"}}, false},
	} {
		a := newAccess(t, v1alpha1.AuthenticationAPI, test.object, iamProfile("muster-node", "AROA1"))
		if err := identityservice.MakeClusterNodeRole(t.Context(), a.store(), account, "blue", false, time.Now()); err != nil {
			t.Fatal(err)
		}
		if err := RemoveOwnRole(t.Context(), a.management, a.store(), "blue"); err != nil {
			t.Fatal(err)
		}
		if _, there, err := identityservice.FindClusterNodeRole(a.store(), account, "blue"); there != test.stays || err != nil {
			t.Errorf("%s: it is there: %v, %v", name, there, err)
		}
	}
}
