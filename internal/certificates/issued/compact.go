// SPDX-License-Identifier: Apache-2.0

package issued

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
)

// A node that asks for certificates all day long, as fast as it can, must not fill etcd.
const (
	// maxEntries of one owner are kept whole: older ones become keys before they expire.
	maxEntries = 64
	// maxKeys of one owner are kept: seven years of renewals every five days, client and serving. Beyond that the ones
	// in the oldest segments are forgotten: they were this owner's, and it is its own loss.
	maxKeys = 1024
	// keepExpired is how long an expired certificate is kept whole.
	keepExpired = 24 * time.Hour
)

// compact makes segments small: expired certificates become keys, duplicates go, and neighbours that fit into one
// become one.
func (r *Register) compact(ctx context.Context) error {
	for _, s := range r.wasteful() {
		if err := r.write(ctx, s); err != nil && !errors.Is(err, errAgain) {
			return fmt.Errorf("compacting: %w", err)
		}
	}
	for {
		into, from := r.neighbours()
		if into == nil {
			return nil
		}
		// First everything is in one, then the other is deleted. Dying in between leaves it there twice, which changes
		// no answer, and the next compaction goes on.
		err := r.write(ctx, into)
		if err == nil {
			err = r.discard(ctx, from)
		}
		switch {
		case errors.Is(err, errAgain):
			return nil // somebody else is at work
		case err != nil:
			return fmt.Errorf("compacting: %w", err)
		}
	}
}

// wasteful returns smaller copies of the segments that are worth a write.
func (r *Register) wasteful() []*segment {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.config.Now()
	seen, entries, keys := map[string]bool{}, map[string]int{}, map[string]int{}
	for _, s := range r.order {
		for _, k := range s.retired {
			keys[r.groups.list[k.group].owner]++
		}
	}
	var list []*segment
	for _, s := range slices.Backward(r.order) { // the newest first: it is the oldest that a limit hits
		if !s.writable() {
			continue
		}
		c := s.clone()
		slices.Reverse(c.entries)
		c.keep(func(e Entry) bool {
			twice := seen[e.UID]
			seen[e.UID] = true
			return !twice
		})
		twice := len(s.entries) - len(c.entries)
		r.retireEntries(c, func(e Entry) bool {
			entries[e.owner()]++
			return now.Sub(e.NotAfter) > keepExpired || entries[e.owner()] > maxEntries
		})
		slices.Reverse(c.entries)
		gone := len(s.entries) - len(c.entries) - twice
		if twice > 0 || gone > 0 && gone*4 >= len(s.entries) {
			list = append(list, c)
		}
	}
	slices.Reverse(list)
	return append(list, r.overKept(keys, list)...)
}

// overKept returns copies of the oldest segments without the keys that are too many of one owner.
func (r *Register) overKept(keys map[string]int, except []*segment) []*segment {
	var list []*segment
	for _, s := range r.order {
		if !s.writable() || slices.ContainsFunc(except, func(x *segment) bool { return x.name == s.name }) {
			continue
		}
		c := s.clone()
		c.retired = slices.DeleteFunc(c.retired, func(k retired) bool {
			owner := r.groups.list[k.group].owner
			over := keys[owner] > maxKeys
			if over {
				keys[owner]--
			}
			return over
		})
		if len(c.retired) < len(s.retired) {
			list = append(list, c)
		}
	}
	return list
}

// neighbours returns a copy of a segment with the content of the next one added, and that one; nil if there are no two
// that are small enough.
func (r *Register) neighbours() (into, from *segment) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var before *segment
	for _, s := range r.order {
		if !s.writable() {
			continue
		}
		// A tenth stays free, so that the newest one does not begin anew at once.
		if before == nil || before.bytes+s.bytes > r.config.SegmentBytes*9/10 {
			before = s
			continue
		}
		c := before.clone()
		for _, e := range s.entries {
			if !c.uids[e.UID] {
				c.add(e)
			}
		}
		c.retired = append(c.retired, s.retired...)
		c.sort()
		return c, s
	}
	return nil, nil
}

// discard deletes a segment whose content is in another one.
func (r *Register) discard(ctx context.Context, s *segment) error {
	err := r.config.Client.CoreV1().ConfigMaps(r.config.Namespace).Delete(ctx, s.name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &s.uid, ResourceVersion: &s.revision},
	})
	switch {
	case apierrors.IsConflict(err):
		return r.reread(ctx, s)
	case err != nil && !apierrors.IsNotFound(err):
		return fmt.Errorf("deleting ConfigMap %s/%s: %w", r.config.Namespace, s.name, err)
	}
	r.remove(s)
	return nil
}

// retireEntries replaces entries by their keys.
func (r *Register) retireEntries(s *segment, out func(Entry) bool) {
	s.keep(func(e Entry) bool {
		if !out(e) {
			return true
		}
		var since time.Time
		keys := []short{shorten(e.Key)}
		if isClient(e.Signer) {
			since = e.NotBefore
			if e.token() != "" {
				keys = append(keys, useOf(e.token(), e.Node))
			}
			if e.joins() {
				keys = append(keys, joinOf(e.Node))
			}
			if e.Certificate != (pki.Fingerprint{}) && r.config.Now().Before(e.NotAfter) {
				keys = append(keys, shorten(e.Certificate)) // the node may go on with it
			}
		}
		s.retire(&r.groups, e.owner(), e.Machine, since, keys...)
		return false
	})
	s.sort()
}
