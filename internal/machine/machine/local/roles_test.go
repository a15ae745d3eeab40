// SPDX-License-Identifier: Apache-2.0

package local

import (
	"context"
	"errors"
	"testing"
	"time"

	"muster.dev/muster/internal/iam/keyservice"
	"muster.dev/muster/internal/node/imds"
)

type roleAnswer struct {
	credentials keyservice.RoleCredentials
	err         error
}

func (a roleAnswer) RoleCredentials(context.Context, string) (keyservice.RoleCredentials, error) {
	return a.credentials, a.err
}

func TestRoles(t *testing.T) {
	at := time.Unix(1700000000, 0)
	got, err := Roles{roleAnswer{credentials: keyservice.RoleCredentials{
		RoleName: "r", InstanceProfileARN: "a", InstanceProfileID: "i", AccessKeyID: "k", SecretAccessKey: "s", SessionToken: "t", LastUpdated: at, Expiration: at.Add(1),
	}}}.Role(t.Context(), "i-1")
	want := imds.Role{Name: "r", ProfileARN: "a", ProfileID: "i", AccessKeyID: "k", SecretAccessKey: "s", Token: "t", LastUpdated: at, Expiration: at.Add(1)}
	if err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := (Roles{roleAnswer{err: &keyservice.Unknown{Code: "NoSuchEntity"}}}).Role(t.Context(), "i-1"); !errors.Is(err, imds.ErrNotFound) {
		t.Errorf("a machine without a role: %v", err)
	}
	if _, err := (Roles{roleAnswer{err: errors.New("down")}}).Role(t.Context(), "i-1"); err == nil || errors.Is(err, imds.ErrNotFound) {
		t.Errorf("while nobody can tell: %v", err)
	}
	for change, want := range map[*keyservice.Change]bool{
		{All: true}: true, {UserIDs: []string{"AROA"}}: true, {Instances: []string{"i-1"}}: true, {AccessKeyIDs: []string{"AKIA"}}: false, {}: false,
	} {
		if ForgetOn(*change) != want {
			t.Errorf("%+v", *change)
		}
	}
}
