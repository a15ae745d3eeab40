// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/cluster/serviceaccounts"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/signerclient"
	"muster.dev/muster/internal/plane/tokenkeys"
	"muster.dev/muster/internal/plane/tokensigner"
)

// runSigner runs the token signer of a cluster until the test ends, with keys that it makes.
func runSigner(t *testing.T, h *hosted, c component.Config) component.Config {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c.Places.TokenSigner = component.At(l.Addr().(*net.TCPAddr).AddrPort())
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := tokenkeys.Begin(c); err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "ts-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- tokensigner.Run(ctx, tokensigner.Config{
			Issuer: c.Issuer.URL, Keys: c.Dir.TokenSigner(), LegacyKey: c.SigningKey(), Socket: filepath.Join(dir, "s.sock"),
			Address:    c.Places.TokenSigner.Listen.String(),
			Credential: c.Credential(component.TokenSigner), ClientCA: c.Authority(authority.FrontProxy), Client: component.UserAccount, Log: slog.New(slog.DiscardHandler),
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	signer := signerclient.New(c, h.log)
	own, err := tokenkeys.NewIssuing(c.Issuer.URL, signer.Ring)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{})
	go func() { defer close(asked); signer.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-asked })
	h.mu.Lock()
	h.specs, h.accounts = c, serviceaccounts.Cluster{Specs: c, Signer: signer, Issuing: own}
	h.mu.Unlock()
	eventually(t, "the signer has told of its keys", func() bool {
		ring, err := tokenkeys.Read(filepath.Join(c.Dir.TokenSigner(), "keys.json"))
		known, knows := signer.Ring()
		return err == nil && knows == nil && known.Last().ID == ring.Last().ID
	})
	return c
}

func TestRotateTokenKeys(t *testing.T) {
	s := newService(t)
	c := hostIssuer(t, s, "blue", "127.93.14.201", "0123456789ABCDEF0123456789ABCDEF")
	h := s.cluster("blue")
	runSigner(t, h, c)
	now := time.Now()
	known := func() tokenkeys.Ring {
		t.Helper()
		ring, err := h.accounts.Signer.Ring()
		if err != nil {
			t.Fatal(err)
		}
		return ring
	}
	first := known().Signer(now).ID
	if _, err := h.rotateTokenKeys(-time.Second); err == nil || !strings.Contains(err.Error(), "from 0s to") {
		t.Errorf("before now: %v", err)
	}
	keys, err := h.rotateTokenKeys(time.Hour)
	if err != nil || len(keys) != 2 || !keys[0].Signs || keys[0].ID != first || keys[1].Signs || !keys[1].Published {
		t.Fatalf("%+v, %v", keys, err)
	}
	// It is begun once, however often somebody asks.
	again, err := h.rotateTokenKeys(time.Minute)
	if err != nil || len(again) != 2 || again[1] != keys[1] {
		t.Errorf("%+v, %v", again, err)
	}
	documents, _, err := h.accounts.Issuing.At(now)
	if err != nil || !strings.Contains(string(documents.Keys), first) || !strings.Contains(string(documents.Keys), keys[1].ID) {
		t.Errorf("it publishes %s, %v", documents.Keys, err)
	}
	if status := s.Status(t.Context()).Clusters[0].TokenKeys; len(status) != 2 || status[1].ID != keys[1].ID {
		t.Errorf("the status says %+v", status)
	}
	then := time.Now().Add(time.Hour + 2*time.Second)
	if got := known().Signer(then).ID; got != keys[1].ID {
		t.Errorf("after the notice %s signs", got)
	}
	late := then.Add(tokenkeys.MaxLifetime + tokenkeys.Skew)
	if documents, _, err = h.accounts.Issuing.At(late); err != nil || strings.Contains(string(documents.Keys), first) {
		t.Errorf("a day later it publishes %s, %v", documents.Keys, err)
	}
	pruned, changed := known().Prune(then)
	if got := pruned.Signer(now).ID; !changed || got != keys[1].ID {
		t.Errorf("with a clock that was put back %s signs, whose private part is destroyed", got)
	}
	status := servicestatus.TokenKeys(known(), late)
	if len(status) != 2 || status[0].Published || status[0].Signs || !status[1].Signs {
		t.Errorf("%+v", status)
	}
	if status = servicestatus.TokenKeys(known(), then.Add(tokenkeys.MaxExtended+tokenkeys.Skew)); len(status) != 1 {
		t.Errorf("90 days later: %+v", status)
	}
}
