// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/platform/atomicfile"
)

// FirstUserName is the user that a new account has.
const FirstUserName = "admin"

// administrator is the ARN of the policy of the first user.
func administrator() string { return managedPolicy("AdministratorAccess") }

func managedPolicy(name string) string {
	return iam.Policy{Account: iam.AWSAccount, Path: "/", Name: name}.ARN().String()
}

// First makes an account that can be used: with a user that may do everything, whose access key is in a file. The
// account itself comes last: once it is there nothing is made any more, and a user or key that somebody deletes does
// not come back. Whatever kills it in between, the next run goes on with what it finds.
func First(ctx context.Context, store Store, account, credentials string, now time.Time) (made bool, err error) {
	state, err := store.State()
	if err != nil {
		return false, err
	}
	if state.HasAccount(account) {
		return false, nil
	}
	if err := firstUser(ctx, store, account, now); err != nil {
		return false, fmt.Errorf("making the first user: %w", err)
	}
	if err := firstNodeRole(ctx, store, account, now); err != nil {
		return false, fmt.Errorf("making the role of nodes: %w", err)
	}
	key, err := firstKey(ctx, store, account, now)
	if err != nil {
		return false, fmt.Errorf("making the first access key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(credentials), 0o700); err != nil {
		return false, fmt.Errorf("making directory of the first access key: %w", err)
	}
	content := "# Written once by muster: the first user of the account " + account + ". It is yours to change or remove.\n" +
		"[default]\naws_access_key_id = " + key.ID + "\naws_secret_access_key = " + key.Secret.Reveal() + "\n"
	if err := atomicfile.Write(credentials, []byte(content), 0o600); err != nil {
		return false, err
	}
	err = store.Create(ctx, iam.Account{ID: account, Created: moment(now)})
	return err == nil, err
}

// firstRetry is the pause before the first account is tried to be made again, unless the store changes before.
const firstRetry = 500 * time.Millisecond

// AwaitFirst makes an account that can be used, see [First], as soon as the store lets it. Failures are in the log; the
// error is the context's.
func AwaitFirst(ctx context.Context, store Store, account, credentials string, log *slog.Logger) error {
	changed, stop := store.Changed()
	defer stop()
	for {
		made, err := First(ctx, store, account, credentials, time.Now())
		if made {
			log.Info("made the first IAM user", "user", FirstUserName, "credentials", credentials)
		}
		if err == nil {
			return nil
		}
		if !errors.Is(err, ErrNotReady) {
			log.Warn("making the first IAM user", "error", err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed: // such as that it is ready
		case <-time.After(firstRetry):
		}
	}
}

func firstUser(ctx context.Context, store Store, account string, now time.Time) error {
	state, err := store.State()
	if err != nil {
		return err
	}
	u, ok := state.User(account, FirstUserName)
	switch {
	case !ok:
		u = iam.User{Account: account, Path: "/", Name: FirstUserName, Created: moment(now), Grants: iam.Grants{Attached: []string{administrator()}}}
		if u.ID, err = iam.NewID(iam.UserPrefix, rand.Reader); err != nil {
			return err
		}
		return store.Create(ctx, u)
	case !slices.Contains(u.Attached, administrator()):
		u.Attached = append(slices.Clone(u.Attached), administrator())
		return store.Update(ctx, state, u)
	}
	return nil
}

var errForeign = errors.New("an instance profile of that name carries another role")

// firstNodeRole makes the node role of the account, for node groups that name it, and its instance profile.
func firstNodeRole(ctx context.Context, store Store, account string, now time.Time) error {
	state, err := store.State()
	if err != nil {
		return err
	}
	role, ok := state.Role(account, v1alpha1.AccountNodeRole)
	if !ok {
		role = iam.Role{
			Account: account, Path: "/", Name: v1alpha1.AccountNodeRole, Description: "Machines of node groups that name this role.", Trust: nodeTrust,
			MaxSession: iam.DefaultRoleSession, Created: moment(now), Grants: nodeGrants(),
		}
		if role.ID, err = iam.NewID(iam.RolePrefix, rand.Reader); err != nil {
			return err
		}
		if err := store.Create(ctx, role); err != nil {
			return err
		}
	}
	profile, ok := state.Profile(account, v1alpha1.AccountNodeRole)
	switch {
	case ok && profile.RoleID == role.ID:
		return nil
	case ok && profile.RoleID != "":
		return errForeign
	}
	exists := ok
	if !exists {
		profile = iam.InstanceProfile{Account: account, Path: "/", Name: v1alpha1.AccountNodeRole, Created: moment(now)}
		if profile.ID, err = iam.NewID(iam.ProfilePrefix, rand.Reader); err != nil {
			return err
		}
	}
	profile.RoleID, profile.RoleName = role.ID, role.Name
	if exists {
		return store.Update(ctx, state, profile)
	}
	return store.Create(ctx, profile)
}

// firstKey is an active key of the first user: one that an earlier run made, or a new one.
func firstKey(ctx context.Context, store Store, account string, now time.Time) (iam.AccessKey, error) {
	state, err := store.State()
	if err != nil {
		return iam.AccessKey{}, err
	}
	u, ok := state.User(account, FirstUserName)
	if !ok {
		return iam.AccessKey{}, errors.New("the user is gone again")
	}
	keys := state.KeysOf(u.ID)
	for _, key := range keys {
		if key.Usable() {
			return key, nil
		}
	}
	if err := iam.CheckNewKey(u, len(keys)); err != nil {
		return iam.AccessKey{}, err
	}
	key, err := iam.NewAccessKey(u, now, rand.Reader)
	if err != nil {
		return iam.AccessKey{}, err
	}
	return key, store.Create(ctx, key)
}

// WriteToolConfig writes the configuration that AWS's tools find the service by.
func WriteToolConfig(path, region, endpoint, authority string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making directory of the AWS configuration: %w", err)
	}
	content := "# Written by muster at every start.\n[default]\nregion = " + region + "\noutput = json\nendpoint_url = " + endpoint + "\nca_bundle = " + authority + "\n"
	return atomicfile.Write(path, []byte(content), 0o600)
}
