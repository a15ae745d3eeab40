// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto/ecdsa"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/client-go/util/keyutil"

	"muster.dev/muster/internal/plane/component"
)

// Keeper writes the file of the keys of one cluster: one change at a time.
type Keeper struct{ mu sync.Mutex }

// Ensure makes the keys of a new cluster's service account tokens. A cluster of before there was the file goes on with the one key that it
// had; in any other, keys that are lost are not made anew: every token that they signed would be worthless.
func (k *Keeper) Ensure(c component.Config, now time.Time) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	path, marker := c.TokenKeys(), c.Dir.Component(component.TokenSigner)
	_, missing := os.Stat(path)
	_, marked := os.Stat(marker)
	switch {
	case missing == nil:
		return mark(marker)
	case !errors.Is(missing, fs.ErrNotExist):
		return fmt.Errorf("reading the keys of service account tokens: %w", missing)
	case marked == nil:
		return fmt.Errorf("reading the keys of service account tokens: %s is missing, and the cluster is in use: restore the file from a backup, or remove everything with `muster down --delete`", path)
	}
	ring, err := first(c, now)
	if err != nil {
		return err
	}
	if err := Write(path, ring); err != nil {
		return err
	}
	return mark(marker)
}

// mark notes that the file is there from now on.
func mark(marker string) error {
	if err := os.MkdirAll(marker, 0o700); err != nil {
		return fmt.Errorf("making the directory of the token signer: %w", err)
	}
	return nil
}

// first are the keys of a cluster that has no file yet.
func first(c component.Config, now time.Time) (Ring, error) {
	if _, err := os.Stat(filepath.Join(c.Dir.Etcd(), "member")); errors.Is(err, fs.ErrNotExist) {
		return New(now, RS256, rand.Reader)
	}
	parsed, err := keyutil.PrivateKeyFromFile(c.SigningKey())
	if err != nil {
		return Ring{}, fmt.Errorf("reading the key of service account tokens: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return Ring{}, fmt.Errorf("reading the key of service account tokens: %s is of type %T and must be an EC key", c.SigningKey(), parsed)
	}
	return Of(now, key)
}

// Prune takes out of the file what is not needed any more.
func (k *Keeper) Prune(c component.Config, now time.Time, log *slog.Logger) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring, err := Read(c.TokenKeys())
	if err != nil {
		return err
	}
	pruned, changed := ring.Prune(now)
	if !changed {
		return nil
	}
	log.Info("removed what is not needed any more of the keys of service account tokens", "keys", len(pruned.Keys()))
	return Write(c.TokenKeys(), pruned)
}

// Rotate adds a key that signs after a notice, and returns all keys as the file has them then. The error is [ErrUnderWay], beside the keys, if a key
// that does not sign yet is published already.
func (k *Keeper) Rotate(c component.Config, notice time.Duration, now time.Time) (Ring, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	ring, err := Read(c.TokenKeys())
	if err != nil {
		return Ring{}, err
	}
	next, err := ring.Rotate(now, notice, rand.Reader)
	if err != nil {
		return ring, err
	}
	return next, Write(c.TokenKeys(), next)
}
