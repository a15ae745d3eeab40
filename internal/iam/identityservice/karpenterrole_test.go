// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
	"muster.dev/muster/internal/iam/identityservice/identityservicetest"
)

const (
	karpenterRole = "muster-karpenter-blue"
	onePolicy     = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:ListRoles","Resource":"*"}]}`
	otherPolicy   = `{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"iam:ListUsers","Resource":"*"}]}`
)

func makeKarpenterRole(t *testing.T, store identityservice.Store, policy string) (string, error) {
	t.Helper()
	return identityservice.MakeKarpenterRole(t.Context(), store, account, "blue", policy, time.Now())
}

func TestKarpenterRole(t *testing.T) {
	t.Parallel()
	store := identityservicetest.NewMemory()
	if _, err := makeKarpenterRole(t, store, onePolicy); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("before the account is there: %v", err)
	}
	create(t, store, own.Account{ID: account})
	first, err := makeKarpenterRole(t, store, onePolicy)
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []string{onePolicy, otherPolicy, otherPolicy} {
		if id, err := makeKarpenterRole(t, store, policy); id != first || err != nil {
			t.Fatalf("made again: %s, %v; want %s", id, err, first)
		}
		if role, _ := roleOf(t, store, karpenterRole); len(role.Inline) != 1 || role.Inline["karpenter"] != policy {
			t.Errorf("policies %v", role.Inline)
		}
	}
	if err := identityservice.RemoveKarpenterRole(t.Context(), store, account, "green"); err != nil {
		t.Fatal(err)
	}
	if _, there := roleOf(t, store, karpenterRole); !there {
		t.Error("the end of another cluster removed the role")
	}
	for range 2 {
		if err := identityservice.RemoveKarpenterRole(t.Context(), store, account, "blue"); err != nil {
			t.Fatal(err)
		}
	}
	if _, there := roleOf(t, store, karpenterRole); there {
		t.Error("the role is left")
	}
}

// A role of the name that somebody made is neither given to Karpenter nor removed.
func TestKarpenterRoleOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	w.role(karpenterRole, trusting("Service", "eks.amazonaws.com"))
	if _, err := makeKarpenterRole(t, w.store, onePolicy); !errors.Is(err, identityservice.ErrForeignRole) {
		t.Errorf("made: %v", err)
	}
	if _, err := identityservice.AssumeForKarpenter(w.service, "blue"); !errors.Is(err, identityservice.ErrForeignRole) {
		t.Errorf("assumed: %v", err)
	}
	if err := identityservice.RemoveKarpenterRole(t.Context(), w.store, account, "blue"); err != nil {
		t.Fatal(err)
	}
	if _, there := roleOf(t, w.store, karpenterRole); !there {
		t.Error("it was removed")
	}
}

// The session may do what the role's policy says, and ends with the role.
func TestKarpenterSession(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	if _, err := identityservice.AssumeForKarpenter(w.service, "blue"); !errors.Is(err, identityservice.ErrNotReady) {
		t.Errorf("before there is a role: %v", err)
	}
	if _, err := makeKarpenterRole(t, w.store, onePolicy); err != nil {
		t.Fatal(err)
	}
	got := must[identityservice.Credentials](w)(identityservice.AssumeForKarpenter(w.service, "blue"))
	if left := got.Expires.Sub(got.Issued); left != time.Hour {
		t.Errorf("the credentials last %s", left)
	}
	session := signer{got.AccessKeyID, got.Secret.Reveal(), got.SessionToken}
	who := must[*sts.GetCallerIdentityOutput](w)(w.sts(session).GetCallerIdentity(t.Context(), nil))
	if want := "arn:aws:sts::" + account + ":assumed-role/" + karpenterRole + "/karpenter"; *who.Arn != want {
		t.Errorf("it is %s, want %s", *who.Arn, want)
	}
	if _, err := w.iam(session).ListRoles(t.Context(), nil); err != nil {
		t.Errorf("what the policy allows: %v", err)
	}
	if _, err := w.iam(session).ListUsers(t.Context(), nil); err == nil {
		t.Error("did what the policy does not allow")
	}
	if _, err := w.iam(session).GetRole(t.Context(), &iam.GetRoleInput{RoleName: aws.String(karpenterRole)}); err == nil {
		t.Error("read a role")
	}
	if err := identityservice.RemoveKarpenterRole(t.Context(), w.store, account, "blue"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.iam(session).ListRoles(t.Context(), nil); err == nil {
		t.Error("the session outlived its role")
	}
}
