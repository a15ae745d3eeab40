// SPDX-License-Identifier: Apache-2.0

package clusteraccess

import (
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
	"muster.dev/muster/internal/machine/nodegroup"
)

func rolesWithStore(t *testing.T, store identityservice.Store, objects ...client.Object) *NodeRoles {
	t.Helper()
	n := &NodeRoles{Access: newAccess(t, v1alpha1.AuthenticationAPI, objects...)}
	n.store = func() identityservice.Store { return store }
	return n
}

func storeWithRole(t *testing.T) *identityservicetest.Memory {
	t.Helper()
	store := identityservicetest.NewMemory()
	role := iam.Role{ID: "AROA2", Account: account, Path: "/", Name: "workers", MaxSession: time.Hour}
	if err := store.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	return store
}

func profileNames(t *testing.T, store identityservice.Store) (names []string) {
	t.Helper()
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range state.Profiles(account) {
		names = append(names, p.Name)
	}
	return names
}

func TestPrepareMakesAProfile(t *testing.T) {
	t.Parallel()
	store := storeWithRole(t)
	n := rolesWithStore(t, store, iamRole("/", "workers", "AROA2"), iamProfile("workers", "AROA1"))
	if name, err := n.Prepare(t.Context(), "workers"); name != "workers" || err != nil || len(profileNames(t, store)) != 1 {
		t.Errorf("%q, %v, %v", name, err, profileNames(t, store))
	}
	n = rolesWithStore(t, nil, iamRole("/", "workers", "AROA2"))
	n.store = func() identityservice.Store { return nil }
	if _, err := n.Prepare(t.Context(), "workers"); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("while the identity service is away: %v", err)
	}
	store = storeWithRole(t)
	for _, name := range []string{"workers", "muster-workers"} {
		if err := store.Create(t.Context(), iam.InstanceProfile{ID: "AIPA" + name, Account: account, Path: "/", Name: name, RoleID: "AROA1"}); err != nil {
			t.Fatal(err)
		}
	}
	_, err := rolesWithStore(t, store, iamRole("/", "workers", "AROA2")).Prepare(t.Context(), "workers")
	if problem, ok := errors.AsType[*nodegroup.RoleProblem](err); !ok || problem.Reason != reasonNoProfile {
		t.Errorf("both names are taken: %v", err)
	}
}

// A profile goes when neither a group nor a machine has it.
func TestTidy(t *testing.T) {
	t.Parallel()
	group := func(name, role string) *v1alpha1.NodeGroup {
		return &v1alpha1.NodeGroup{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1alpha1.NodeGroupSpec{Provider: v1alpha1.ProviderLocal, NodeRole: role}}
	}
	machine := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "i-1"}, Spec: v1alpha1.MachineSpec{InstanceProfile: "workers"}}
	control := func(compute *v1alpha1.ClusterCompute) *v1alpha1.Cluster {
		return &v1alpha1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "blue", Name: "blue"}, Spec: v1alpha1.ClusterSpec{Name: "blue", Compute: compute}}
	}
	known := []client.Object{&v1alpha1.IAMAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, iamRole("/", "workers", "AROA2")}
	for name, test := range map[string]struct {
		objects []client.Object
		left    int
	}{
		"a group has it":           {[]client.Object{group("a", "workers")}, 1},
		"a group has it by ARN":    {[]client.Object{group("a", "arn:aws:iam::000000000000:role/workers")}, 1},
		"a machine has it":         {[]client.Object{machine}, 1},
		"nobody has it":            {nil, 0},
		"a control plane gives it": {[]client.Object{control(&v1alpha1.ClusterCompute{Enabled: true, NodeRole: "workers"})}, 1},
		"it gave it once":          {[]client.Object{control(&v1alpha1.ClusterCompute{NodeRole: "workers"})}, 0},
		"it gives the cluster's":   {[]client.Object{control(&v1alpha1.ClusterCompute{Enabled: true})}, 0},
		"a group has another role": {[]client.Object{group("a", "others")}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := storeWithRole(t)
			n := rolesWithStore(t, store, append(test.objects, known...)...)
			if _, err := n.Prepare(t.Context(), "workers"); err != nil {
				t.Fatal(err)
			}
			if err := n.Tidy(t.Context()); err != nil || len(profileNames(t, store)) != test.left {
				t.Errorf("%v; left are %v", err, profileNames(t, store))
			}
		})
	}
}
