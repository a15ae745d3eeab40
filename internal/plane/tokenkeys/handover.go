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

// Begin makes the directory of the signer of a new cluster, once, and allows the signer to make keys; from then on the
// directory is the signer's alone. A cluster in use has one ([Convert]).
func Begin(c component.Config) error {
	_, err := os.Stat(c.Dir.TokenSigner())
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	used, err := isUsed(c)
	if err != nil {
		return err
	}
	if used {
		return lost(c.Dir.TokenSigner())
	}
	return makeDir(c, func(made string) error { return atomicfile.Write(filepath.Join(made, newName), nil, 0o600) })
}

// Convert finds the keys of a cluster that the service kept before the cluster's signer did, and returns what copies
// them into a directory of the signer; nil if the cluster is new, or has that directory. [Forget] removes the keys where
// they were once the signer has told of them.
func Convert(c component.Config, now time.Time) (func() error, error) {
	_, err := os.Stat(c.Dir.TokenSigner())
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	ring, found, err := before(c, now)
	if err != nil || !found {
		return nil, err
	}
	return func() error {
		return makeDir(c, func(made string) error {
			return errors.Join(Write(filepath.Join(made, keysName), ring), WritePublic(c.Dir.TokenKeys(), ring))
		})
	}, nil
}

// makeDir makes the directory of a signer with what fill puts there; whole or not at all.
func makeDir(c component.Config, fill func(made string) error) error {
	made := c.Dir.TokenSigner() + ".new"
	if err := os.MkdirAll(made, 0o700); err != nil {
		return fmt.Errorf("making the directory of the token signer: %w", err)
	}
	if err := fill(made); err != nil {
		return err
	}
	return atomicfile.Move(made, c.Dir.TokenSigner())
}

// before are the keys that a cluster had before its signer kept them. A cluster of before there was a file of keys has
// the key of tokens in Secrets. Nothing is found if the cluster is new, or a signer has run.
func before(c component.Config, now time.Time) (ring Ring, found bool, err error) {
	ring, err = Read(c.TokenKeysBefore())
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return ring, err == nil, err
	}
	if there, err := exists(c.Dir.Component(component.TokenSigner)); there || err != nil {
		return Ring{}, false, err
	}
	if used, err := isUsed(c); !used || err != nil {
		return Ring{}, false, err
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
	return ring, err == nil, err
}

// isUsed reports whether the cluster has data, or its signer has run.
func isUsed(c component.Config) (bool, error) {
	used, err := exists(filepath.Join(c.Dir.Etcd(), "member"))
	if used || err != nil {
		return used, err
	}
	return exists(c.Dir.Component(component.TokenSigner))
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
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
