// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/tokenkeys"
)

func writeTokenKeys(t *testing.T, c component.Config, r tokenkeys.Ring) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(c.TokenKeys()), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := tokenkeys.Write(c.TokenKeys(), r); err != nil {
		t.Fatal(err)
	}
}

func signerOf(t *testing.T, c component.Config, now time.Time) string {
	t.Helper()
	r, err := tokenkeys.Read(c.TokenKeys())
	if err != nil {
		t.Fatal(err)
	}
	return r.Signer(now).ID
}

func TestIssuingWithoutKeys(t *testing.T) {
	c := component.Config{Dir: newDir(t).Cluster("blue")}
	issuing := func() error {
		_, err := newIssuing(c)
		return err
	}
	says(t, issuing(), `"" is not https://HOST/id/ID`)
	c.Issuer.URL = "https://127.93.14.201/id/0123456789ABCDEF0123456789ABCDEF"
	if err := issuing(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a file: %v", err)
	}
	write(t, c.TokenKeys(), "{")
	says(t, issuing(), "is damaged")
}

// TestEnsureTokenKeys has a cluster of each kind get its keys, and keep them.
func TestEnsureTokenKeys(t *testing.T) {
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
			s := newService(t)
			c := component.Config{Dir: s.cfg.State.Cluster("blue")}
			h := s.host(t.Context(), c.Dir)
			if _, err := h.keys.Ensure(nil, now); err != nil {
				t.Fatal(err)
			}
			if tc.used {
				write(t, filepath.Join(c.Dir.Etcd(), "member"), "")
			}
			if tc.lost {
				if err := h.ensureTokenKeys(c, now); err != nil {
					t.Fatal(err)
				}
				if err := os.Remove(c.TokenKeys()); err != nil {
					t.Fatal(err)
				}
			}
			err := h.ensureTokenKeys(c, now)
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
			first := signerOf(t, c, now)
			legacy, err := firstTokenKeys(component.Config{Dir: c.Dir}, now)
			if err != nil {
				t.Fatal(err)
			}
			ring, err := tokenkeys.Read(c.TokenKeys())
			if err != nil {
				t.Fatal(err)
			}
			// A new cluster signs as EKS does; one of before keeps what its verifiers know.
			if got := ring.Signer(now).Algorithm; got != map[bool]tokenkeys.Algorithm{true: tokenkeys.ES256, false: tokenkeys.RS256}[tc.legacy] {
				t.Errorf("it signs by %s", got)
			}
			if got := legacy.Signer(now).ID == first; got != tc.legacy {
				t.Errorf("the key of tokens in Secrets signs: %v", got)
			}
			if err := h.ensureTokenKeys(c, now); err != nil || signerOf(t, c, now) != first {
				t.Errorf("the second time it is another: %v", err)
			}
			if info, err := os.Stat(c.TokenKeys()); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%v, %v", info.Mode(), err)
			}
		})
	}
}

func TestRotateTokenKeys(t *testing.T) {
	s := newService(t)
	c := hostIssuer(t, s, "blue", "127.93.14.201", "0123456789ABCDEF0123456789ABCDEF")
	h := s.cluster("blue")
	now := time.Now()
	first := signerOf(t, c, now)
	if _, err := h.rotateTokenKeys(-time.Second, now); err == nil || !strings.Contains(err.Error(), "from 0s to") {
		t.Errorf("before now: %v", err)
	}
	keys, err := h.rotateTokenKeys(time.Hour, now)
	if err != nil || len(keys) != 2 || !keys[0].Signs || keys[0].ID != first || keys[1].Signs || !keys[1].Published {
		t.Fatalf("%+v, %v", keys, err)
	}
	// It is begun once, however often somebody asks.
	again, err := h.rotateTokenKeys(time.Minute, now)
	if err != nil || len(again) != 2 || again[1] != keys[1] {
		t.Errorf("%+v, %v", again, err)
	}
	documents, _, err := h.issuing.at(now)
	if err != nil || !strings.Contains(string(documents.Keys), first) || !strings.Contains(string(documents.Keys), keys[1].ID) {
		t.Errorf("it publishes %s, %v", documents.Keys, err)
	}
	then := now.Add(time.Hour + 2*time.Second)
	if got := signerOf(t, c, then); got != keys[1].ID {
		t.Errorf("after the notice %s signs", got)
	}
	if err := h.pruneTokenKeys(c, then); err != nil {
		t.Fatal(err)
	}
	if got := signerOf(t, c, now); got != keys[1].ID {
		t.Errorf("with a clock that was put back %s signs, whose private part is destroyed", got)
	}
	late := then.Add(tokenkeys.MaxLifetime + tokenkeys.Skew)
	if documents, _, err = h.issuing.at(late); err != nil || strings.Contains(string(documents.Keys), first) {
		t.Errorf("a day later it publishes %s, %v", documents.Keys, err)
	}
	status := servicestatus.TokenKeys(c.TokenKeys(), late)
	if len(status) != 2 || status[0].Published || status[0].Signs || !status[1].Signs {
		t.Errorf("%+v", status)
	}
	if status = servicestatus.TokenKeys(c.TokenKeys(), then.Add(tokenkeys.MaxExtended+tokenkeys.Skew)); len(status) != 1 {
		t.Errorf("90 days later: %+v", status)
	}
}
