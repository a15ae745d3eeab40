// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/iam/identityservice"
)

func TestRenamingIsCutShort(t *testing.T) {
	for _, verb := range []string{"create", "delete", "none"} {
		t.Run("at "+verb, func(t *testing.T) {
			p := newPlane(t)
			store := follow(t, p)
			ctx := t.Context()
			if err := store.Create(ctx, someUser("alice")); err != nil {
				t.Fatal(err)
			}
			p.failing(func(v string, _ client.Object) error {
				if v == verb {
					return errors.New("killed")
				}
				return nil
			})
			renamed := someUser("alice")
			renamed.Name = "zoe"
			err := store.Update(ctx, state(t, store), renamed)
			p.failing(nil)
			want := "zoe"
			if verb == "create" {
				want = "alice"
			}
			if (err != nil) != (verb == "create") {
				t.Error(err)
			}
			for _, s := range []identityservice.Store{store, follow(t, p)} {
				users := state(t, s).Users(account)
				if len(users) != 1 || users[0].Name != want || users[0].ID != renamed.ID {
					t.Errorf("%+v, want %s alone", users, want)
				}
			}
			// The old name can be had again, by the same user and by others.
			back := someUser("alice")
			if err := store.Update(ctx, state(t, store), back); err != nil {
				t.Fatal(err)
			}
			if users := state(t, follow(t, p)).Users(account); len(users) != 1 || users[0].Name != "alice" {
				t.Errorf("back: %+v", users)
			}
		})
	}
}

// An old name that could not be removed goes with the user, which would come back by it.
func TestAUserWhoWasRenamedAndDeletedIsGone(t *testing.T) {
	for _, again := range []bool{false, true} { // whether the first try to delete fails, too
		p := newPlane(t)
		store := follow(t, p)
		ctx := t.Context()
		if err := store.Create(ctx, someUser("alice")); err != nil {
			t.Fatal(err)
		}
		killed := func(v string, _ client.Object) error {
			if v == "delete" {
				return errors.New("killed")
			}
			return nil
		}
		p.failing(killed)
		renamed := someUser("alice")
		renamed.Name = "zoe"
		if err := store.Update(ctx, state(t, store), renamed); err != nil {
			t.Fatal(err)
		}
		if again {
			if err := store.Delete(ctx, state(t, store), renamed); err == nil {
				t.Error("it is deleted, although nothing can be")
			}
			if users := state(t, store).Users(account); len(users) != 1 || users[0].Name != "zoe" {
				t.Errorf("%+v, want zoe as before", users)
			}
		}
		p.failing(nil)
		if err := store.Delete(ctx, state(t, store), renamed); err != nil {
			t.Fatal(err)
		}
		for _, s := range []identityservice.Store{store, follow(t, p)} {
			if users := state(t, s).Users(account); len(users) != 0 {
				t.Errorf("%+v is back", users)
			}
		}
	}
}
