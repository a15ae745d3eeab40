// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

func newRing(t rapid.TB) Ring {
	t.Helper()
	r, err := New(noon, ES256, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func ids(keys []Key) []string {
	var all []string
	for _, k := range keys {
		all = append(all, k.ID)
	}
	return all
}

// TestLife follows a key through its life, at the seconds around each change.
func TestLife(t *testing.T) {
	r := newRing(t)
	old := r.Signer(noon).ID
	r, err := r.Rotate(noon, time.Hour, rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	added := r.keys[1].ID
	if _, err := r.Rotate(noon, 0, rand.Reader); !errors.Is(err, ErrUnderWay) {
		t.Errorf("another one at the same time: %v", err)
	}
	signs := noon.Add(time.Hour)
	for _, tc := range []struct {
		name               string
		at                 time.Time
		signer             string
		published, trusted []string
	}{
		{"at once", noon, old, []string{old, added}, []string{old, added}},
		{"before it signs", signs.Add(-1), old, []string{old, added}, []string{old, added}},
		{"when it signs", signs, added, []string{old, added}, []string{old, added}},
		{"while tokens live", signs.Add(24*time.Hour + 5*time.Minute - 1), added, []string{old, added}, []string{old, added}},
		{"a day later", signs.Add(24*time.Hour + 5*time.Minute), added, []string{added}, []string{old, added}},
		{"while tokens of pods live", signs.Add(90*24*time.Hour + 5*time.Minute - 1), added, []string{added}, []string{old, added}},
		{"90 days later", signs.Add(90*24*time.Hour + 5*time.Minute), added, []string{added}, []string{added}},
	} {
		for _, ring := range []Ring{r, must(r.Prune(tc.at))} {
			if got := ring.Signer(tc.at).ID; got != tc.signer {
				t.Errorf("%s: %s signs", tc.name, got)
			}
			if got := ids(ring.Published(tc.at)); !slices.Equal(got, tc.published) {
				t.Errorf("%s: published are %v", tc.name, got)
			}
			if got := ids(ring.Trusted(tc.at)); !slices.Equal(got, tc.trusted) {
				t.Errorf("%s: trusted are %v", tc.name, got)
			}
		}
	}
	after, changed := r.Prune(signs)
	if !changed || after.keys[0].Private != nil || after.keys[1].Private == nil {
		t.Errorf("the private part of the old key is kept: %v", changed)
	}
	if _, changed := after.Prune(signs); changed {
		t.Error("it is pruned twice")
	}
	if kept, changed := r.Prune(signs.Add(-1)); changed || kept.keys[0].Private == nil {
		t.Error("the key that signs lost its private part")
	}
}

func must(r Ring, _ bool) Ring { return r }

func TestLimits(t *testing.T) {
	r := newRing(t)
	for _, notice := range []time.Duration{-1, MaxNotice + 1} {
		if _, err := r.Rotate(noon, notice, rand.Reader); err == nil {
			t.Errorf("a notice of %s is accepted", notice)
		}
	}
	now := noon
	for range maxKeys - 1 {
		var err error
		if r, err = r.Rotate(now, 0, rand.Reader); err != nil {
			t.Fatal(err)
		}
		now = now.Add(2 * time.Second)
	}
	if _, err := r.Rotate(now, 0, rand.Reader); err == nil || !strings.Contains(err.Error(), "there are 64 keys already") {
		t.Errorf("a key too many: %v", err)
	}
	if _, err := r.Rotate(now.Add(MaxExtended+Skew), 0, rand.Reader); err != nil {
		t.Errorf("when the oldest are gone: %v", err)
	}
}

// signed is a token that somebody holds.
type signed struct {
	key          string
	day, quarter time.Time // until which STS and the API server are to take it
}

// waits come close to the moments at which something changes.
var waits = []time.Duration{time.Second, 20 * time.Minute, 59 * time.Minute, 66 * time.Minute, 13 * time.Hour, 22 * time.Hour, 25 * time.Hour, 50 * 24 * time.Hour, 89 * 24 * time.Hour}

// TestAnySequence rotates, prunes, waits and crashes in any order, and asks after each step that no token is refused
// which is good. A crash leaves the file as it was before a write or as it is after one (package atomicfile), so it is
// tried at each write.
func TestAnySequence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dir, err := os.MkdirTemp("", "tokenkeys-") //nolint:usetesting // rapid's own T has none
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = os.RemoveAll(dir) }()
		path := filepath.Join(dir, "keys.json")
		if err := Write(path, newRing(t)); err != nil {
			t.Fatal(err)
		}
		source := NewSource(path) // of the signer, which outlives the service
		now := noon
		var tokens []signed
		copies := map[time.Time][]string{} // documents that verifiers have kept, by the moment at which they fetched them
		read := func() Ring {
			r, err := source.Ring()
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		write := func(r Ring) {
			if rapid.Float64Range(0, 1).Draw(t, "crash before the write") < 0.3 {
				return
			}
			if err := Write(path, r); err != nil {
				t.Fatal(err)
			}
		}
		step := map[string]func(){
			"rotate": func() {
				if r, err := read().Rotate(now, Notice, rand.Reader); err == nil {
					write(r)
				}
			},
			"prune": func() {
				if r, changed := read().Prune(now); changed {
					write(r)
				}
			},
			"sign": func() {
				k := read().Signer(now)
				if k.Private == nil {
					t.Fatal("a key without its private part is to sign")
				}
				tokens = append(tokens, signed{k.ID, now.Add(MaxLifetime), now.Add(MaxExtended)})
			},
			"fetch": func() { copies[now] = ids(read().Published(now)) },
			"wait":  func() { now = now.Add(rapid.SampledFrom(waits).Draw(t, "how long")) },
		}
		for range 60 {
			step[rapid.SampledFrom([]string{"rotate", "prune", "sign", "fetch", "wait"}).Draw(t, "step")]()
			trusted, published := ids(read().Trusted(now)), ids(read().Published(now))
			for _, token := range tokens {
				if now.Before(token.quarter) && !slices.Contains(trusted, token.key) {
					t.Fatalf("at %s the API server refuses a token that is good until %s", now, token.quarter)
				}
				if now.Before(token.day) && !slices.Contains(published, token.key) {
					t.Fatalf("at %s a token is refused that is good until %s", now, token.day)
				}
			}
			for fetched, keys := range copies {
				if now.Sub(fetched) <= Notice-Skew && !slices.Contains(keys, read().Signer(now).ID) {
					t.Fatalf("at %s a verifier that fetched the documents at %s does not know the key that signs", now, fetched)
				}
			}
		}
	})
}
