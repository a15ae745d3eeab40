// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

func nodeRole(id string) own.Role {
	return own.Role{ID: id, Account: account, Path: "/", Name: "workers", Created: time.Unix(0, 0).UTC(), MaxSession: time.Hour}
}

func nodeProfileOf(name, roleID string) own.InstanceProfile {
	return own.InstanceProfile{ID: "AIPA" + strings.ToUpper(name) + roleID, Account: account, Path: "/", Name: name, RoleID: roleID}
}

func TestNodeProfile(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		there      []own.InstanceProfile
		want, says string
	}{
		"there is none":                 {nil, "workers", ""},
		"it is there":                   {[]own.InstanceProfile{nodeProfileOf("workers", "AROA1")}, "workers", ""},
		"the name is another's":         {[]own.InstanceProfile{nodeProfileOf("workers", "AROA2")}, "muster-workers", ""},
		"the name is taken by capitals": {[]own.InstanceProfile{nodeProfileOf("Workers", "AROA2")}, "muster-workers", ""},
		"somebody's is empty":           {[]own.InstanceProfile{nodeProfileOf("workers", "")}, "muster-workers", ""},
		"both are others'":              {[]own.InstanceProfile{nodeProfileOf("workers", "AROA2"), nodeProfileOf("muster-workers", "AROA2")}, "", "add-role-to-instance-profile"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := identityservicetest.NewMemory()
			create(t, store, nodeRole("AROA1"))
			for _, p := range test.there {
				create(t, store, p)
			}
			for range 2 { // the second finds what the first made
				got, err := identityservice.NodeProfile(t.Context(), store, account, "AROA1", time.Now())
				if got != test.want || (err == nil) != (test.says == "") || err != nil && !strings.Contains(err.Error(), test.says) {
					t.Fatalf("%q, %v", got, err)
				}
			}
			if p := profiles(t, store)[test.want]; test.want != "" && p.RoleID != "AROA1" {
				t.Errorf("it carries %q", p.RoleID)
			}
		})
	}
	if _, err := identityservice.NodeProfile(t.Context(), identityservicetest.NewMemory(), account, "AROA1", time.Now()); err == nil {
		t.Error("a profile was made for no role")
	}
}

func TestNodeProfileOfARoleThatWasMadeAgain(t *testing.T) {
	t.Parallel()
	store := identityservicetest.NewMemory()
	create(t, store, nodeRole("AROA1"))
	if _, err := identityservice.NodeProfile(t.Context(), store, account, "AROA1", time.Now()); err != nil {
		t.Fatal(err)
	}
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Delete(t.Context(), state, nodeRole("AROA1")); err != nil {
		t.Fatal(err)
	}
	create(t, store, nodeRole("AROA2"))
	if got, err := identityservice.NodeProfile(t.Context(), store, account, "AROA2", time.Now()); got != "workers" || err != nil || profiles(t, store)["workers"].RoleID != "AROA2" {
		t.Errorf("%q, %v, %+v", got, err, profiles(t, store))
	}
}

// Machines of the role "workers" must not become those of the role "muster-workers".
func TestNodeProfileOfAnotherRole(t *testing.T) {
	t.Parallel()
	store := identityservicetest.NewMemory()
	create(t, store, nodeRole("AROA1"))
	create(t, store, nodeProfileOf("workers", ""))
	second := nodeRole("AROA2")
	second.Name = "muster-workers"
	create(t, store, second)
	for id, want := range map[string]string{"AROA1": "muster-workers", "AROA2": "muster-muster-workers"} {
		for range 2 {
			if id == "AROA2" {
				if _, err := identityservice.NodeProfile(t.Context(), store, account, "AROA1", time.Now()); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := identityservice.NodeProfile(t.Context(), store, account, id, time.Now()); got != want || err != nil || profiles(t, store)[want].RoleID != id {
				t.Errorf("role %s: %q, %v, %+v", id, got, err, profiles(t, store))
			}
		}
	}
}

func TestRemoveNodeProfiles(t *testing.T) {
	t.Parallel()
	store := identityservicetest.NewMemory()
	create(t, store, nodeRole("AROA1"))
	create(t, store, nodeProfileOf("somebodys", ""))
	if _, err := identityservice.NodeProfile(t.Context(), store, account, "AROA1", time.Now()); err != nil {
		t.Fatal(err)
	}
	used := true
	remove := func() ([]string, error) {
		return identityservice.RemoveNodeProfiles(t.Context(), store, account, func(p own.InstanceProfile) bool { return used && p.RoleName == "workers" })
	}
	if removed, err := remove(); len(removed) != 0 || err != nil {
		t.Errorf("removed %v although it is used (%v)", removed, err)
	}
	used = false
	store.Fail = func(int, identityservice.Entity) error { return errors.New("the disk is full") }
	if removed, err := remove(); len(removed) != 0 || err == nil {
		t.Errorf("removed %v (%v)", removed, err)
	}
	store.Fail = nil
	removed, err := remove()
	if diff := cmp.Diff([]string{"workers"}, removed); diff != "" || err != nil {
		t.Errorf("%v %s", err, diff)
	}
	if left := profiles(t, store); len(left) != 1 || left["somebodys"].Name == "" {
		t.Errorf("left are %v", left)
	}
}

func create(t *testing.T, store identityservice.Store, e identityservice.Entity) {
	t.Helper()
	if err := store.Create(t.Context(), e); err != nil {
		t.Fatal(err)
	}
}

func profiles(t *testing.T, store identityservice.Store) map[string]own.InstanceProfile {
	t.Helper()
	state, err := store.State()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]own.InstanceProfile{}
	for _, p := range state.Profiles(account) {
		all[p.Name] = p
	}
	return all
}
