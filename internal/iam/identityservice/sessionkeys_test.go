// SPDX-License-Identifier: Apache-2.0

package identityservice_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	own "muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/identityservice"
)

func TestSessionKeysAreReplacedAndOpenWhatTheySealed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "iam", "session-keys.json")
	now := time.Now()
	open := func(at time.Time) *identityservice.Sealer {
		t.Helper()
		s, err := identityservice.OpenSealer(path, at)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	sealed := identityservice.Session{AccessKeyID: "ASIAAAAAAAAAAAAAAAAA", Secret: own.SecretOf("s3cret"), PrincipalID: "AROAAAAAAAAAAAAAAAAAA", Name: "x", Expires: now.Add(time.Hour).UTC().Truncate(time.Second)}
	token, err := open(now).Seal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, path)
	if strings.Contains(token, "s3cret") {
		t.Error("the secret is in the token as it is")
	}
	for at, want := range map[time.Duration]bool{0: true, 29 * 24 * time.Hour: true} {
		if got, err := open(now.Add(at)).Open(sealed.AccessKeyID, token); (err == nil) != want || want && got.Secret.Reveal() != "s3cret" {
			t.Errorf("after %s: %v", at, err)
		}
	}
	month := now.Add(31 * 24 * time.Hour)
	next := open(now)
	if err := next.Renew(month); err != nil {
		t.Fatal(err)
	}
	if _, err := next.Open(sealed.AccessKeyID, token); err != nil {
		t.Errorf("by the key before: %v", err)
	}
	fresh, err := next.Seal(sealed)
	if err != nil {
		t.Fatal(err)
	}
	later := open(month.Add(38 * time.Hour))
	if _, err := later.Open(sealed.AccessKeyID, token); err == nil {
		t.Error("a key whose sessions have all ended is kept")
	}
	if _, err := later.Open(sealed.AccessKeyID, fresh); err != nil {
		t.Errorf("by the key that seals: %v", err)
	}
	if _, err := later.Open("ASIABAAAAAAAAAAAAAAA", fresh); err == nil {
		t.Error("the token of another access key is opened")
	}
	for _, damaged := range []string{"", "{", "[]x", `[{"id":1,"key":"AAAA"}]`} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := identityservice.OpenSealer(path, now); err == nil || !strings.Contains(err.Error(), "is damaged") {
			t.Errorf("%q: %v", damaged, err)
		}
	}
}

func FuzzOpen(f *testing.F) {
	sealer, err := identityservice.OpenSealer(filepath.Join(f.TempDir(), "k"), time.Now())
	if err != nil {
		f.Fatal(err)
	}
	token, err := sealer.Seal(identityservice.Session{AccessKeyID: "ASIAAAAAAAAAAAAAAAAA"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(token[1:])
	f.Add("")
	f.Add("AQAAAAE")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := sealer.Open("ASIAAAAAAAAAAAAAAAAA", text); err == nil && text != token {
			t.Errorf("%q is opened", text)
		}
	})
}
