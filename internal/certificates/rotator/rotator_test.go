// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
)

// stage is a world in which a rotation happens, with a clock of its own.
type stage struct {
	t         *testing.T
	keys      *Keys
	now       time.Time
	waits     map[rotation.Phase]string // a verifier's answer in a phase
	nodes     []rotation.Node
	unseen    error
	unplugged error // publishing fails
	published string
	said      string
	progress  *rotation.Progress
}

func newStage(t *testing.T) *stage {
	t.Helper()
	s := &stage{t: t, keys: NewKeys(authority.NewStore(t.TempDir())), now: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), waits: map[rotation.Phase]string{}}
	if _, err := s.keys.Ensure(nil, s.now); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *stage) pending(_ context.Context, r rotation.Rotation) string { return s.waits[r.Phase] }

// step looks once, as a service that was started anew: all it knows is on disk.
func (s *stage) step(after time.Duration) time.Duration {
	s.t.Helper()
	s.now = s.now.Add(after)
	r := &Rotator{
		verifiers: []verifier{s}, Config: Config{
			Keys: s.keys, Log: slog.New(slog.DiscardHandler),
			Publish: func(_ context.Context, trusted []*x509.Certificate) error {
				if s.unplugged != nil {
					return s.unplugged
				}
				var names []string
				for _, ca := range trusted {
					names = append(names, ca.Subject.CommonName)
				}
				s.published = strings.Join(names, ",")
				return nil
			},
			Nodes: func(authorities map[string]*x509.Certificate) ([]rotation.Node, error) {
				if !slices.Equal(slices.Sorted(maps.Keys(authorities)), []string{"kubelet-1", "kubelet-2"}) {
					s.t.Errorf("nodes are told apart by %v", authorities)
				}
				return s.nodes, s.unseen
			},
			Report: func(waits string, progress *rotation.Progress) { s.said, s.progress = waits, progress },
		},
	}
	return r.step(s.t.Context(), s.now)
}

func (s *stage) expect(signs, published, said string) {
	s.t.Helper()
	k, err := s.keys.Kubelets()
	if err != nil {
		s.t.Fatal(err)
	}
	if k.Signs() != signs || s.published != published || !strings.Contains(s.said, said) || (said == "") != (s.said == "") {
		s.t.Errorf("%s signs, published are %s, it says %q; rotation: %+v", k.Signs(), s.published, s.said, k.Rotation)
	}
}

func TestRotatorIsKilledAfterEveryStep(t *testing.T) {
	const both, one, two = "muster kubelet-1,muster kubelet-2", "muster kubelet-1", "muster kubelet-2"
	s := newStage(t)
	if pause := s.step(0); pause != idleInterval {
		t.Errorf("with nothing to do it looks again after %s", pause)
	}
	s.expect("kubelet-1", one, "")
	if err := s.keys.StartRotation(s.now); err != nil {
		t.Fatal(err)
	}
	s.unplugged = errors.New("no API server")
	s.step(time.Second)
	s.expect("kubelet-1", one, "no API server") // an unpublished authority is not used
	s.unplugged = nil
	s.waits[rotation.Trust] = "the API server has not read it"
	s.nodes = []rotation.Node{{Name: "a", Client: &rotation.Certificate{Authority: "kubelet-1", Ends: s.now.Add(time.Hour)}}}
	if pause := s.step(time.Hour / 2); pause != verifyInterval {
		t.Errorf("while somebody has to read it looks again after %s", pause)
	}
	s.expect("kubelet-1", both, "has not read it")
	if s.progress == nil || s.progress.Client != 1 {
		t.Errorf("progress is %+v", s.progress)
	}
	delete(s.waits, rotation.Trust)
	if pause := s.step(time.Second); pause != 0 {
		t.Errorf("after a new phase it looks again after %s", pause)
	}
	s.expect("kubelet-2", both, "")
	if pause := s.step(time.Second); pause != replaceInterval {
		t.Errorf("while nodes renew it looks again after %s", pause)
	}
	s.expect("kubelet-2", both, "1 have a client")
	s.nodes[0].Client.Authority = "kubelet-2"
	s.step(time.Minute)
	s.expect("kubelet-2", both, "may last until")
	s.unseen = errors.New("no disk")
	s.step(5 * time.Minute)
	s.expect("kubelet-2", both, "no disk")
	s.unseen = nil
	s.step(5 * time.Minute)
	s.expect("kubelet-2", both, "may last until")
	s.step(rotation.Grace)
	s.waits[rotation.Withdraw] = "the API server still trusts kubelet-1"
	s.step(time.Second)
	s.expect("kubelet-2", two, "still trusts")
	delete(s.waits, rotation.Withdraw)
	s.step(time.Second)
	s.step(time.Second)
	s.expect("kubelet-2", two, "")
	k, err := s.keys.Kubelets()
	if err != nil || k.Rotation != nil || k.Last == nil || k.Last.Old != "kubelet-1" || !k.Last.Finished.Equal(s.now.Add(-time.Second)) {
		t.Errorf("in the end the record is %+v, last %+v (%v)", k, k.Last, err)
	}
}

// Findings while the service ends, as requests that are broken off, must not move anything.
func TestRotatorThatEnds(t *testing.T) {
	s := newStage(t)
	if err := s.keys.StartRotation(s.now); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	r := &Rotator{
		Config: Config{
			Keys: s.keys, Log: slog.New(slog.DiscardHandler),
			Publish: func(context.Context, []*x509.Certificate) error { return nil },
			Nodes:   func(map[string]*x509.Certificate) ([]rotation.Node, error) { cancel(); return nil, nil },
			Report:  func(string, *rotation.Progress) { t.Error("it says something") },
		},
	}
	r.step(ctx, s.now)
	if k, err := s.keys.Kubelets(); err != nil || k.Rotation == nil || k.Rotation.Phase != rotation.Trust {
		t.Errorf("it went on: %+v (%v)", k.Rotation, err)
	}
}
