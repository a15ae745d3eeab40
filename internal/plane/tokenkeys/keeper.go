// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

const (
	keysName = "keys.json"
	// newName is a file in the directory of a signer of a new cluster: it allows the signer to make keys, once.
	newName = "new"
	// unfinished begins the names of files that a write leaves which the process does not survive, and abandoned is how
	// old they are when nobody can be writing them any more.
	unfinished, abandoned = ".new-", time.Hour
)

// Keeper keeps the keys of one cluster in a directory that is the signer's alone, and makes one change at a time.
type Keeper struct {
	dir    string
	source *Source
	mu     sync.Mutex
}

// Open opens the directory of a signer. In that of a new cluster it makes the first key. Keys that are lost are not
// made anew: every token that they signed would be worthless.
func Open(dir string, now time.Time) (*Keeper, error) {
	k := &Keeper{dir: dir, source: NewSource(filepath.Join(dir, keysName))}
	allowed := filepath.Join(dir, newName)
	_, missing := os.Stat(k.source.path)
	_, old := os.Stat(allowed)
	switch {
	case missing == nil:
	case !errors.Is(missing, fs.ErrNotExist):
		return nil, fmt.Errorf("reading the keys of service account tokens: %w", missing)
	case old != nil:
		return nil, lost(k.source.path)
	default:
		ring, err := New(now, RS256, rand.Reader)
		if err == nil {
			err = Write(k.source.path, ring)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := os.Remove(allowed); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("noting that there are keys of service account tokens: %w", err)
	}
	return k, nil
}

func lost(path string) error {
	return fmt.Errorf("reading the keys of service account tokens: %s is missing, and the cluster is in use: restore the file from a backup, or remove everything with `muster down --delete`", path)
}

// Ring is what the file says now.
func (k *Keeper) Ring() (Ring, error) { return k.source.Ring() }

// Prune takes out of the file what is not needed any more, and reports whether there was anything. It removes what
// writes have left, too: such files have private keys, which would stay when the keys are gone.
func (k *Keeper) Prune(now time.Time) (changed bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := k.sweep(now); err != nil {
		return false, fmt.Errorf("removing what is left of keys of service account tokens: %w", err)
	}
	ring, err := k.Ring()
	if err != nil {
		return false, err
	}
	pruned, changed := ring.Prune(now)
	if !changed {
		return false, nil
	}
	return true, Write(k.source.path, pruned)
}

func (k *Keeper) sweep(now time.Time) error {
	entries, err := os.ReadDir(k.dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), unfinished) || now.Sub(info.ModTime()) < abandoned {
			continue // a file that is gone was finished
		}
		if err := os.Remove(filepath.Join(k.dir, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Rotate does what is ordered, and returns all keys as the file has them then, and whether a key was added. Nothing is
// added if a key that does not sign yet is published already, or if the last key is another than the order says: then
// somebody, or an earlier try, has added one. The error is *[Refused] for an order that cannot be carried out.
func (k *Keeper) Rotate(o Order, now time.Time) (ring Ring, added bool, err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring, err = k.Ring()
	if err != nil || ring.Last().ID != o.After {
		return ring, false, err
	}
	next, err := ring.Rotate(now, o.Notice, rand.Reader)
	switch {
	case errors.Is(err, ErrUnderWay):
		return ring, false, nil
	case err != nil:
		return Ring{}, false, &Refused{err.Error()}
	}
	err = Write(k.source.path, next)
	return next, err == nil, err
}
