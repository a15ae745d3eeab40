// SPDX-License-Identifier: Apache-2.0

package tokenkeys

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/client-go/util/keyutil"

	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/atomicfile"
)

// HandOver makes the directory of a cluster's signer, once; from then on it is the signer's alone. That of a new
// cluster allows it to make keys. A cluster of before goes on with the keys that it had: they are copied, and [Forget]
// removes them where they were once the signer has told of them.
func HandOver(c component.Config, now time.Time) error {
	_, err := os.Stat(c.Dir.TokenSigner())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	ring, isNew, err := before(c, now)
	if err != nil {
		return err
	}
	made := c.Dir.TokenSigner() + ".new"
	if err := os.MkdirAll(made, 0o700); err != nil {
		return fmt.Errorf("making the directory of the token signer: %w", err)
	}
	if isNew {
		err = atomicfile.Write(filepath.Join(made, newName), nil, 0o600)
	} else {
		err = errors.Join(Write(filepath.Join(made, keysName), ring), WritePublic(c.Dir.TokenKeys(), ring))
	}
	if err != nil {
		return err
	}
	return atomicfile.Move(made, c.Dir.TokenSigner())
}

// before are the keys that a cluster had before its signer kept them; isNew says that it never had any.
func before(c component.Config, now time.Time) (ring Ring, isNew bool, err error) {
	ring, err = Read(c.TokenKeysBefore())
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return ring, false, err
	}
	if _, err := os.Stat(c.Dir.Component(component.TokenSigner)); err == nil { // a signer has run
		return Ring{}, false, lost(c.Dir.TokenSigner())
	}
	if _, err := os.Stat(filepath.Join(c.Dir.Etcd(), "member")); errors.Is(err, fs.ErrNotExist) {
		return Ring{}, true, nil
	}
	parsed, err := keyutil.PrivateKeyFromFile(c.SigningKey())
	if err != nil {
		return Ring{}, false, fmt.Errorf("reading the key of service account tokens: %w", err)
	}
	key, ok := parsed.(*ecdsa.PrivateKey)
	if !ok {
		return Ring{}, false, fmt.Errorf("reading the key of service account tokens: %s is of type %T and must be an EC key", c.SigningKey(), parsed)
	}
	ring, err = Of(now, key)
	return ring, false, err
}

// Forget removes the keys of a cluster of before, if its signer tells of each of them by which tokens are trusted still:
// the signer takes others out as soon as it begins.
func Forget(c component.Config, told Ring, now time.Time) error {
	old, err := Read(c.TokenKeysBefore())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, k := range old.Trusted(now) {
		if !slices.ContainsFunc(told.Keys(), func(t Key) bool { return t.ID == k.ID }) {
			return fmt.Errorf("the token signer does not have the key %s of %s: it stays there", k.ID, c.TokenKeysBefore())
		}
	}
	if err := os.Remove(c.TokenKeysBefore()); err != nil {
		return fmt.Errorf("removing the keys of service account tokens where they were: %w", err)
	}
	return nil
}
