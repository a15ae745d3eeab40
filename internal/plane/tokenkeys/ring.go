// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/plane/issuer"
)

const (
	// MaxLifetime is how long a token is good, at most.
	MaxLifetime = component.TokenLifetime
	// MaxExtended is how long a token is good that a pod has for the API server and that the kubelet renews each hour:
	// as on EKS.
	MaxExtended = 90 * 24 * time.Hour
	// Skew is how far clocks of verifiers may be from the host's.
	Skew = 5 * time.Minute
	// Notice is how long a key is published before it signs: longer than verifiers keep the issuer's documents.
	Notice = issuer.MaxAge + Skew
	// MaxNotice is for people who publish the documents themselves.
	MaxNotice = 30 * 24 * time.Hour
	// maxKeys bounds the file. With a rotation a week there are 14.
	maxKeys = 64
)

// ErrUnderWay means that a key is published already that does not sign yet.
var ErrUnderWay = errors.New("a new key is published already, and does not sign yet")

// Key is one of a cluster's.
type Key struct {
	// ID is the claim kid of tokens.
	ID        string
	Algorithm Algorithm
	Public    crypto.PublicKey
	// Private is nil once another key signs, and in a list of public keys.
	Private crypto.Signer
	// CanSign says that whoever keeps the ring has the private part.
	CanSign bool
	// Created is since when it is published, Signs from when it signs.
	Created, Signs time.Time
}

// Ring holds the keys of a cluster, at least one key, in the order in which they began to sign.
type Ring struct{ keys []Key }

// New makes the ring of a new cluster, with a key that signs at once.
func New(now time.Time, algorithm Algorithm, random io.Reader) (Ring, error) {
	private, err := generate(algorithm, random)
	if err != nil {
		return Ring{}, err
	}
	return Of(now, private)
}

// Of makes a ring of a key that signs already.
func Of(now time.Time, private crypto.Signer) (Ring, error) {
	key, err := newKey(private, now, now)
	return Ring{[]Key{key}}, err
}

func newKey(private crypto.Signer, created, signs time.Time) (Key, error) {
	algorithm, err := algorithmOf(private.Public())
	if err != nil {
		return Key{}, fmt.Errorf("reading a key of service account tokens: %w", err)
	}
	id, err := issuer.KeyID(private.Public())
	if err != nil {
		return Key{}, fmt.Errorf("naming a key of service account tokens: %w", err)
	}
	return Key{ID: id, Algorithm: algorithm, Public: private.Public(), Private: private, CanSign: true, Created: created.UTC().Truncate(time.Second), Signs: signs.UTC().Truncate(time.Second)}, nil
}

// Keys are all of the ring.
func (r Ring) Keys() []Key { return slices.Clone(r.keys) }

// Last is the key that begins to sign after all others.
func (r Ring) Last() Key { return r.keys[len(r.keys)-1] }

// Signer is the key that signs at a moment: the last whose time has come and whose private part exists.
func (r Ring) Signer(now time.Time) Key {
	var first, last *Key
	for i := range r.keys {
		k := &r.keys[i]
		if !k.CanSign {
			continue
		}
		if first == nil {
			first = k
		}
		if !k.Signs.After(now) {
			last = k
		}
	}
	if last != nil {
		return *last
	}
	return *first // the file has one: read and Prune see to it
}

// Published are the keys in the issuer's documents at a moment.
func (r Ring) Published(now time.Time) []Key { return r.until(now, MaxLifetime) }

// Trusted are the keys by which the API server takes tokens at a moment.
func (r Ring) Trusted(now time.Time) []Key { return r.until(now, MaxExtended) }

// until are the keys that have not ended to sign a lifetime ago.
func (r Ring) until(now time.Time, lifetime time.Duration) []Key {
	var keys []Key
	for i, k := range r.keys {
		if end, ended := r.replaced(i); !ended || now.Before(end.Add(lifetime+Skew)) {
			keys = append(keys, k)
		}
	}
	return keys
}

// replaced is when another key signs instead, if there is one.
func (r Ring) replaced(i int) (time.Time, bool) {
	if i+1 == len(r.keys) {
		return time.Time{}, false
	}
	return r.keys[i+1].Signs, true
}

// Rotate adds a key that signs after a notice, by the algorithm of the last. The error is ErrUnderWay if there is one
// that does not sign yet.
func (r Ring) Rotate(now time.Time, notice time.Duration, random io.Reader) (Ring, error) {
	last := r.Last()
	switch {
	case notice < 0 || notice > MaxNotice:
		return r, fmt.Errorf("a key cannot be published %s before it signs: it must be from 0s to %s", notice, MaxNotice)
	case last.Signs.After(now):
		return r, fmt.Errorf("%w: it will at %s", ErrUnderWay, last.Signs.Format(time.RFC3339))
	}
	private, err := generate(last.Algorithm, random)
	if err != nil {
		return r, err
	}
	// Moments are kept in seconds: one that is cut off must not make the key sign early, nor together with the last.
	signs := now.Add(notice + time.Second - time.Nanosecond).Truncate(time.Second)
	if !signs.After(last.Signs) {
		signs = last.Signs.Add(time.Second)
	}
	key, err := newKey(private, now, signs)
	if err != nil {
		return r, err
	}
	pruned, _ := r.Prune(now)
	if len(pruned.keys) >= maxKeys {
		end, _ := pruned.replaced(0)
		return r, fmt.Errorf("there are %d keys already by which tokens are trusted: the oldest goes at %s", maxKeys, end.Add(MaxExtended+Skew).Format(time.RFC3339))
	}
	return Ring{append(pruned.keys, key)}, nil
}

// Prune is the ring without what is not needed any more: keys that are not trusted, and private parts of those that
// sign no more. It reports whether that is another ring.
func (r Ring) Prune(now time.Time) (Ring, bool) {
	kept := r.Trusted(now)
	changed := len(kept) != len(r.keys)
	signer := r.Signer(now)
	for i := range kept {
		if kept[i].CanSign && kept[i].Signs.Before(signer.Signs) {
			kept[i].Private, kept[i].CanSign, changed = nil, false, true
		}
	}
	return Ring{kept}, changed
}
