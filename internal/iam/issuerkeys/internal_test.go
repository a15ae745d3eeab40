// SPDX-License-Identifier: Apache-2.0

package issuerkeys

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	discovery = `{"issuer":"https://Example.com/id/1","jwks_uri":"https://keys.example.com/1"}`
	keySet    = `{"keys":[{"kty":"EC","kid":"a","crv":"P-256","x":"axfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpY","y":"T-NC4v4af5uO5-tKfA-eFivOM1drMV7Oy7ZAaDe_UfU"}]}`
)

// A token may spell its issuer in many ways, before anything of it is proven: they are one issuer, which is asked once,
// by one name.
func TestSpellingsAreOneIssuer(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	var urls []string
	f := New(Config{Now: func() time.Time { return now }})
	f.get = func(_ context.Context, url string) ([]byte, time.Duration, error) {
		urls = append(urls, url)
		if url == "https://example.com/id/1/.well-known/openid-configuration" {
			return []byte(discovery), time.Hour, nil
		}
		return []byte(keySet), time.Hour, nil
	}
	others := []string{"https://eXample.com/id/1", "https://example.com/id/1/", "https://EXAMPLE.com:443/id/1", "https://Example.com:443/id/1/"}
	for _, issuer := range others {
		if keys, err := f.Keys(t.Context(), issuer, "a"); err == nil || len(keys.IDs()) > 0 || !strings.Contains(err.Error(), "calls itself") {
			t.Errorf("%s: %v, %v", issuer, keys.IDs(), err)
		}
	}
	if keys, err := f.Keys(t.Context(), "https://Example.com/id/1", "a"); err != nil || !keys.Has("a") {
		t.Errorf("as it calls itself: %v", err)
	}
	if len(urls) != 2 || f.known.Len() != 1 {
		t.Errorf("%d issuers, %q", f.known.Len(), urls)
	}
	now = now.Add(again + time.Second)
	for _, issuer := range others {
		_, _ = f.Keys(t.Context(), issuer, "a")
	}
	if len(urls) != 4 { // it may have changed its name
		t.Errorf("half a minute later: %q", urls)
	}
}

// Issuers that let themselves be waited for do not keep others waiting for longer than a fetch, and keys that are known
// are good meanwhile.
func TestSlowIssuers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		f.get = func(ctx context.Context, url string) ([]byte, time.Duration, error) {
			switch {
			case strings.HasPrefix(url, "https://slow-"):
				<-ctx.Done()
				return nil, 0, ctx.Err()
			case strings.HasPrefix(url, "https://example.com/"):
				return []byte(discovery), time.Hour, nil
			}
			return []byte(keySet), time.Hour, nil
		}
		if _, err := f.Keys(t.Context(), "https://Example.com/id/1", "a"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour) //nolint:forbidigo // in a bubble
		var group sync.WaitGroup
		for n := range 10 * maxFetches {
			group.Go(func() {
				began := time.Now()
				if _, err := f.Keys(t.Context(), fmt.Sprintf("https://slow-%d.example.com", n), "a"); err == nil || time.Since(began) > 2*timeout {
					t.Errorf("%v, after %s", err, time.Since(began))
				}
			})
		}
		synctest.Wait()
		began := time.Now()
		if keys, err := f.Keys(t.Context(), "https://Example.com/id/1", "a"); err != nil || !keys.Has("a") || time.Since(began) > timeout {
			t.Errorf("another issuer: %v, after %s", err, time.Since(began))
		}
		group.Wait()
		if _, err := f.Keys(t.Context(), "https://new.example.com", "a"); errors.Is(err, errBusy) {
			t.Error("the places are not free again")
		}
	})
}
