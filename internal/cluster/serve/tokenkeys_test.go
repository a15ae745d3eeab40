// SPDX-License-Identifier: Apache-2.0

package serve

import (
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
	documents, _, err := h.issuing.At(now)
	if err != nil || !strings.Contains(string(documents.Keys), first) || !strings.Contains(string(documents.Keys), keys[1].ID) {
		t.Errorf("it publishes %s, %v", documents.Keys, err)
	}
	then := now.Add(time.Hour + 2*time.Second)
	if got := signerOf(t, c, then); got != keys[1].ID {
		t.Errorf("after the notice %s signs", got)
	}
	if err := h.tokenKeys.Prune(c, then, h.log); err != nil {
		t.Fatal(err)
	}
	if got := signerOf(t, c, now); got != keys[1].ID {
		t.Errorf("with a clock that was put back %s signs, whose private part is destroyed", got)
	}
	late := then.Add(tokenkeys.MaxLifetime + tokenkeys.Skew)
	if documents, _, err = h.issuing.At(late); err != nil || strings.Contains(string(documents.Keys), first) {
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
