// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/iam"
	"muster.dev/muster/internal/iam/keyservice"
)

// hub tells its many listeners what changed.
type hub struct {
	mu    sync.Mutex
	feeds map[*feed]bool
}

// feed collects for one of them.
type feed struct {
	hub     *hub
	ready   chan struct{}
	pending keyservice.Change // under the hub's lock
}

// Changes begins to collect what changes from now on.
func (s *Service) Changes() keyservice.Feed {
	f := &feed{hub: &s.hub, ready: make(chan struct{}, 1)}
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	if s.hub.feeds == nil {
		s.hub.feeds = map[*feed]bool{}
	}
	s.hub.feeds[f] = true
	return f
}

// Ready gets a value when there is something to take.
func (f *feed) Ready() <-chan struct{} { return f.ready }

// Take is everything since the last Take.
func (f *feed) Take() keyservice.Change {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	taken := f.pending
	f.pending = keyservice.Change{}
	return taken
}

// Close ends the feed.
func (f *feed) Close() {
	f.hub.mu.Lock()
	defer f.hub.mu.Unlock()
	delete(f.hub.feeds, f)
}

func (h *hub) tell(c keyservice.Change) {
	if c.Empty() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for f := range h.feeds {
		f.pending = merge(f.pending, c)
		select {
		case f.ready <- struct{}{}:
		default:
		}
	}
}

// merge is both changes; of too many it is All, so that a listener that does not read costs no memory.
func merge(a, b keyservice.Change) keyservice.Change {
	out := keyservice.Change{
		AccessKeyIDs: union(a.AccessKeyIDs, b.AccessKeyIDs), UserIDs: union(a.UserIDs, b.UserIDs), Instances: union(a.Instances, b.Instances),
		Sessions: a.Sessions || b.Sessions, All: a.All || b.All,
	}
	if out.All || len(out.AccessKeyIDs)+len(out.UserIDs)+len(out.Instances) > keyservice.MaxNamed {
		return keyservice.Change{All: true}
	}
	return out
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// InstancesChanged says that instances came, went or changed. An implementation of Instances calls it after Lookup
// answers accordingly.
func (s *Service) InstancesChanged(ids ...string) { s.hub.tell(keyservice.Change{Instances: ids}) }

// Run tells authenticators of changes, and renews the keys that sessions are sealed with, until the context ends.
func (s *Service) Run(ctx context.Context) {
	changed, stop := s.config.Store.Changed()
	defer stop()
	renewal := time.NewTicker(time.Hour)
	defer renewal.Stop()
	var last *State
	for {
		if state, err := s.config.Store.State(); err == nil && state != last {
			s.hub.tell(difference(last, state))
			last = state
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		case <-renewal.C:
			if err := s.config.Sealer.Renew(s.config.Now()); err != nil {
				s.config.Log.Error("renewing the keys that sessions are sealed with", "error", err)
			}
		}
	}
}

// difference is what authenticators must forget when one state follows another: entities that ended, and new ones,
// since they remember a "no" too. The permissions of a role or user are nothing to them.
func difference(old, now *State) keyservice.Change {
	if old == nil {
		return keyservice.Change{All: true}
	}
	var c keyservice.Change
	for id := range both(old.keys, now.keys) {
		before, had := old.keys[id]
		after, has := now.keys[id]
		if had != has || before != after {
			c.AccessKeyIDs = append(c.AccessKeyIDs, id)
			if had && before.Usable() && (!has || !after.Usable()) {
				c.Sessions = true // nobody knows which sessions were made with it
			}
		}
	}
	for id := range both(old.users, now.users) {
		before, had := old.users[id]
		after, has := now.users[id]
		if had != has || before.ARN() != after.ARN() {
			c.UserIDs = append(c.UserIDs, id)
			c.Sessions = c.Sessions || had && !has
		}
	}
	for id := range both(old.roles, now.roles) {
		before, had := old.roles[id]
		after, has := now.roles[id]
		if had != has || before.ARN() != after.ARN() || before.Trust != after.Trust { // instances may have it no more
			c.UserIDs = append(c.UserIDs, id)
		}
	}
	for id := range both(old.profiles, now.profiles) {
		before, had := old.profiles[id]
		after, has := now.profiles[id]
		if had != has || before.RoleID != after.RoleID || before.Name != after.Name {
			for _, p := range []iam.InstanceProfile{before, after} {
				if p.RoleID != "" {
					c.UserIDs = append(c.UserIDs, p.RoleID)
				}
			}
		}
	}
	return merge(keyservice.Change{}, c)
}

func both[T any](a, b map[string]T) map[string]bool {
	all := make(map[string]bool, len(b))
	for id := range a {
		all[id] = true
	}
	for id := range b {
		all[id] = true
	}
	return all
}
