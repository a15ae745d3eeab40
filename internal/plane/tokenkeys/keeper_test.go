// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotator"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// says fails unless the error says it.
func says(t *testing.T, err error, want string) {
	t.Helper()
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func put(t *testing.T, path, content string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(content), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func signerOf(t *testing.T, c component.Config, now time.Time) string {
	t.Helper()
	r, err := Read(c.TokenKeys())
	if err != nil {
		t.Fatal(err)
	}
	return r.Signer(now).ID
}

func TestIssuingWithoutKeys(t *testing.T) {
	c := component.Config{Dir: statedir.Dir(t.TempDir()).Cluster("blue")}
	issuing := func() error {
		_, err := NewIssuing(c)
		return err
	}
	says(t, issuing(), `"" is not https://HOST/id/ID`)
	c.Issuer.URL = "https://127.93.14.201/id/0123456789ABCDEF0123456789ABCDEF"
	if err := issuing(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	put(t, c.TokenKeys(), "{")
	says(t, issuing(), "is damaged")
}

// TestKeeper has a cluster of each kind get its keys, and keep them.
func TestKeeper(t *testing.T) {
	now := time.Now()
	for name, tc := range map[string]struct {
		used, lost bool
		legacy     bool // the first key is that of tokens in Secrets
		want       string
	}{
		"new":                        {},
		"of before there was a file": {used: true, legacy: true},
		"with a file that is lost":   {used: true, lost: true, want: "is missing, and the cluster is in use"},
	} {
		t.Run(name, func(t *testing.T) {
			c := component.Config{Dir: statedir.Dir(t.TempDir()).Cluster("blue")}
			if err := os.MkdirAll(c.Dir.PKI(), 0o700); err != nil {
				t.Fatal(err)
			}
			var keeper Keeper
			if _, err := rotator.NewKeys(authority.NewStore(c.Dir.PKI())).Ensure(nil, now); err != nil {
				t.Fatal(err)
			}
			if tc.used {
				put(t, filepath.Join(c.Dir.Etcd(), "member"), "")
			}
			if tc.lost {
				if err := keeper.Ensure(c, now); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(c.TokenKeys()); err != nil {
					t.Fatal(err)
				}
			}
			err := keeper.Ensure(c, now)
			if tc.want != "" {
				says(t, err, tc.want)
				if _, err := os.Stat(c.TokenKeys()); !errors.Is(err, fs.ErrNotExist) {
					t.Error("keys were made anew")
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			signer := signerOf(t, c, now)
			legacy, err := first(component.Config{Dir: c.Dir}, now)
			if err != nil {
				t.Fatal(err)
			}
			ring, err := Read(c.TokenKeys())
			if err != nil {
				t.Fatal(err)
			}
			// A new cluster signs as EKS does; one of before keeps what its verifiers know.
			if got := ring.Signer(now).Algorithm; got != map[bool]Algorithm{true: ES256, false: RS256}[tc.legacy] {
				t.Errorf("it signs by %s", got)
			}
			if got := legacy.Signer(now).ID == signer; got != tc.legacy {
				t.Errorf("the key of tokens in Secrets signs: %v", got)
			}
			if err := keeper.Ensure(c, now); err != nil || signerOf(t, c, now) != signer {
				t.Errorf("the second time it is another: %v", err)
			}
			if info, err := os.Stat(c.TokenKeys()); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}
