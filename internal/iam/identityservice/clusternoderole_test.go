// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

const clusterRole = "muster-node-blue"

func makeClusterRole(t *testing.T, store identityservice.Store, heir bool) error {
	t.Helper()
	return identityservice.MakeClusterNodeRole(t.Context(), store, account, "blue", heir, time.Now())
}

func roleOf(t *testing.T, store identityservice.Store, name string) (own.Role, bool) {
	t.Helper()
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	return state.Role(account, name)
}

// newAccountWithNodeRole has the node role that every account has, to which somebody gave rights.
func newAccountWithNodeRole(t *testing.T) *identityservicetest.Memory {
	t.Helper()
	store := identityservicetest.NewMemory()
	create(t, store, own.Account{ID: account})
	create(t, store, own.Role{
		ID: "AROA1", Account: account, Path: "/", Name: "muster-node", MaxSession: time.Hour, Boundary: "arn:aws:iam::aws:policy/PowerUserAccess",
		Grants: own.Grants{Attached: []string{"arn:aws:iam::aws:policy/ReadOnlyAccess"}, Inline: map[string]string{"own": "{}"}},
	})
	return store
}

func TestClusterNodeRole(t *testing.T) {
	t.Parallel()
	store := identityservicetest.NewMemory()
	if err := makeClusterRole(t, store, false); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("before the account is there: %v", err)
	}
	store = newAccountWithNodeRole(t)
	writes := 0
	store.Fail = func(int, identityservice.Entity) error { // the second write is cut short
		if writes++; writes == 2 {
			return errors.New("killed")
		}
		return nil
	}
	if err := makeClusterRole(t, store, false); err == nil {
		t.Fatal("nothing failed")
	}
	first, _ := roleOf(t, store, clusterRole)
	for range 2 {
		if err := makeClusterRole(t, store, false); err != nil {
			t.Fatal(err)
		}
	}
	role, ok := roleOf(t, store, clusterRole)
	if p := profiles(t, store)[clusterRole]; !ok || role.ID != first.ID || p.RoleID != role.ID || identityservice.MadeForNodes(p) {
		t.Errorf("role %+v, profile %+v", role, p)
	}
	if len(role.Attached) != 3 || len(role.Inline) != 0 || role.Boundary != "" {
		t.Errorf("a new cluster's nodes inherit: %+v", role)
	}
	if state, _ := store.State(); len(state.Roles(account)) != 2 || len(state.Profiles(account)) != 1 {
		t.Errorf("%+v, %+v", state.Roles(account), state.Profiles(account))
	}
}

// Pods of a cluster of an earlier version may live by the rights that somebody gave to muster-node.
func TestClusterNodeRoleThatInherits(t *testing.T) {
	t.Parallel()
	store := newAccountWithNodeRole(t)
	if err := makeClusterRole(t, store, true); err != nil {
		t.Fatal(err)
	}
	before, _ := roleOf(t, store, "muster-node")
	role, _ := roleOf(t, store, clusterRole)
	if diff := cmp.Diff(before.Grants, role.Grants); diff != "" || role.Boundary != before.Boundary || role.Trust == before.Trust || role.ID == before.ID {
		t.Errorf("%+v%s", role, diff)
	}
}

// Whoever made a role of that name beforehand would be the nodes' master.
func TestClusterNodeRoleOfSomebodyElse(t *testing.T) {
	t.Parallel()
	store := newAccountWithNodeRole(t)
	if err := makeClusterRole(t, store, false); err != nil {
		t.Fatal(err)
	}
	trusted, _ := roleOf(t, store, clusterRole)
	tag := trusted.Tags
	for name, theirs := range map[string]own.Role{
		"another tag":           {Name: clusterRole, Trust: trusted.Trust, Tags: []own.Tag{{Key: "muster.dev/node-role-of", Value: "green"}}},
		"no tag":                {Name: clusterRole, Trust: trusted.Trust},
		"other capitals":        {Name: "Muster-Node-Blue", Tags: tag},
		"trust in somebody":     {Name: clusterRole, Tags: tag, Trust: `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"AWS":"AIDA1"},"Action":"sts:AssumeRole"}]}`},
		"neither trust nor tag": {Name: clusterRole},
	} {
		store := newAccountWithNodeRole(t)
		theirs.ID, theirs.Account, theirs.Path, theirs.MaxSession = "AROA2", account, "/", time.Hour
		create(t, store, theirs)
		if err := makeClusterRole(t, store, false); !errors.Is(err, identityservice.ErrForeignRole) || len(profiles(t, store)) != 0 {
			t.Errorf("%s: %v, %v", name, err, profiles(t, store))
		}
	}
}

func TestRemoveClusterNodeRole(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		profile *own.InstanceProfile
		stays   bool
	}{
		"nobody has it":                   {nil, false},
		"a profile was made for a group":  {&own.InstanceProfile{Name: "more", Tags: []own.Tag{{Key: "muster.dev/made-for", Value: "node groups"}}}, false},
		"somebody put it into a profile":  {&own.InstanceProfile{Name: "more"}, true},
		"it was made for another cluster": {nil, true},
	} {
		store := newAccountWithNodeRole(t)
		if err := makeClusterRole(t, store, false); err != nil {
			t.Fatal(err)
		}
		role, found, err := identityservice.FindClusterNodeRole(store, account, "blue")
		if err != nil || !found {
			t.Fatal(err, found)
		}
		if test.profile != nil {
			test.profile.ID, test.profile.Account, test.profile.Path, test.profile.RoleID = "AIPA9", account, "/", role.ID
			create(t, store, *test.profile)
		}
		namespace := "blue"
		if name == "it was made for another cluster" {
			namespace = "green"
		}
		for range 2 {
			if err := identityservice.RemoveClusterNodeRole(t.Context(), store, namespace, role); err != nil {
				t.Fatal(err)
			}
		}
		if _, there := roleOf(t, store, clusterRole); there != test.stays || len(profiles(t, store)) > 0 != test.stays {
			t.Errorf("%s: the role is there: %v; profiles %v", name, there, profiles(t, store))
		}
	}
	store := newAccountWithNodeRole(t)
	create(t, store, own.Role{ID: "AROA3", Account: account, Path: "/", Name: clusterRole, MaxSession: time.Hour})
	if _, found, err := identityservice.FindClusterNodeRole(store, account, "blue"); found || err != nil {
		t.Errorf("somebody's own role: %v, %v", found, err)
	}
}
