// SPDX-License-Identifier: Apache-2.0

package session

import (
	"os"
	"strings"
	"testing"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/account"
	"muster.dev/muster/internal/plane/clusterconfig"
	"muster.dev/muster/internal/platform/statedir"
)

// The first start makes the account in the region that was asked for; every later one keeps it.
func TestRegionIsKept(t *testing.T) {
	s := Session{State: statedir.Dir(t.TempDir()), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated), Region: "eu-west-1"}
	if err := s.check("", false); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.State.Account()); err == nil {
		t.Error("a check made the account")
	}
	if _, err := s.save(t.Context(), &Outcome{}); err != nil {
		t.Fatal(err)
	}
	made, err := account.Read(s.State)
	if err != nil || made.Region.Name != "eu-west-1" {
		t.Fatalf("made %+v, %v", made, err)
	}
	for _, same := range []string{"", "eu-west-1"} {
		s.Region = same
		if err := s.check("", false); err != nil {
			t.Errorf("region %q: %v", same, err)
		}
		if _, err := s.save(t.Context(), &Outcome{}); err != nil {
			t.Errorf("region %q: %v", same, err)
		}
	}
	for name, running := range map[string]bool{"us-east-1": false, "us-east-2": true} {
		s.Region = name
		if err := s.check("", running); err == nil || !strings.Contains(err.Error(), "is in eu-west-1, not "+name+", and stays there") {
			t.Errorf("region %q: %v", name, err)
		}
	}
	if again, err := account.Read(s.State); err != nil || again != made {
		t.Errorf("the account is %+v now, %v; it was %+v", again, err, made)
	}
}

// A directory in use without its account is not given another one.
func TestLostAccountIsRefused(t *testing.T) {
	s := Session{State: statedir.Dir(t.TempDir()), Wanted: clusterconfig.Default(0, v1alpha1.ProviderSimulated)}
	if _, err := s.save(t.Context(), &Outcome{}); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(s.State.Account()); err != nil {
		t.Fatal(err)
	}
	if err := s.check("", false); err == nil || !strings.Contains(err.Error(), "account.json is missing") {
		t.Errorf("got %v", err)
	}
}
