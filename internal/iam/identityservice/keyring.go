// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// sealLifetime is how long one key seals; after that a new one does, and the old one opens what it sealed until
	// that has ended.
	sealLifetime = 30 * 24 * time.Hour
	// maxSession is the longest that any session lasts (GetSessionToken).
	maxSession = 36 * time.Hour
	// maxSealKeys bounds the file: one seals, and those before it.
	maxSealKeys = 16
)

// sealKey is one key that sessions are sealed with.
type sealKey struct {
	ID      uint32    `json:"id"`
	Created time.Time `json:"created"`
	Key     []byte    `json:"key"` // AES-256
}

// keyring has the newest key last.
type keyring []sealKey

// OpenSealer reads the keys that sessions are sealed with, makes the first one, and replaces one that is old. Without
// the file every session that was ever issued has ended; with a damaged one that must be somebody's decision.
func OpenSealer(path string, now time.Time) (*Sealer, error) {
	s := &Sealer{path: path}
	return s, s.Renew(now)
}

// Renew replaces the key that seals when it is old. Older sealed tokens are opened as long as they may last.
func (s *Sealer) Renew(now time.Time) error {
	ring, err := readKeyring(s.path)
	if err != nil {
		return err
	}
	next, changed, err := ring.renewed(now)
	if err != nil {
		return err
	}
	if changed {
		raw, err := json.Marshal(next)
		if err != nil {
			return fmt.Errorf("encoding session keys: %w", err)
		}
		if err := os.MkdirAll(filepath.Dir(s.path), 0o700); err != nil {
			return fmt.Errorf("making directory of session keys: %w", err)
		}
		if err := atomicfile.Write(s.path, append(raw, '\n'), 0o600); err != nil {
			return err
		}
	}
	keys, err := newSealKeys(next)
	if err != nil {
		return err
	}
	s.current.Store(keys)
	return nil
}

func readKeyring(path string) (keyring, error) {
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading session keys: %w", err)
	}
	var ring keyring
	if err := json.Unmarshal(raw, &ring); err != nil {
		return nil, damagedKeyring(path)
	}
	seen := map[uint32]bool{}
	for _, k := range ring {
		if len(k.Key) != 32 || seen[k.ID] {
			return nil, damagedKeyring(path)
		}
		seen[k.ID] = true
	}
	if len(ring) > maxSealKeys {
		return nil, damagedKeyring(path)
	}
	return ring, nil
}

// damagedKeyring does not quote what it could not read: there are keys in it.
func damagedKeyring(path string) error {
	return fmt.Errorf("%s is damaged: restore it, or remove it, which ends every session that was issued", path)
}

// renewed drops the keys whose sessions have all ended, and adds a key where the last one is old.
func (r keyring) renewed(now time.Time) (keyring, bool, error) {
	var kept keyring
	for i, k := range r {
		// A key seals until the next one comes.
		if i+1 < len(r) && now.After(r[i+1].Created.Add(maxSession+time.Hour)) {
			continue
		}
		kept = append(kept, k)
	}
	if n := len(kept); n > 0 && now.Before(kept[n-1].Created.Add(sealLifetime)) {
		return kept, n != len(r), nil
	}
	fresh := sealKey{ID: 1, Created: now.UTC().Truncate(time.Second), Key: make([]byte, 32)}
	for _, k := range r {
		fresh.ID = max(fresh.ID, k.ID+1)
	}
	if _, err := rand.Read(fresh.Key); err != nil {
		return nil, false, fmt.Errorf("making a session key: %w", err)
	}
	return append(kept, fresh), true, nil
}
