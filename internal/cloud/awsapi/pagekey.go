// SPDX-License-Identifier: Apache-2.0

package awsapi

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/aws/nexttoken"
	"muster.dev/muster/internal/platform/atomicfile"
)

// pageKey reads the key that seals the tokens of lists, or makes it. A file that is damaged is made anew: what ends is
// the lists that clients are in the middle of.
func pageKey(path string) (key [nexttoken.KeySize]byte, err error) {
	raw, err := os.ReadFile(path)
	if err == nil && len(raw) == len(key) {
		return [nexttoken.KeySize]byte(raw), nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return key, fmt.Errorf("reading the key of lists: %w", err)
	}
	if _, err := rand.Read(key[:]); err != nil {
		return key, fmt.Errorf("making the key of lists: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil { // nothing else of the account may have been written there yet
		return key, fmt.Errorf("making the directory of the key of lists: %w", err)
	}
	return key, atomicfile.Write(path, key[:], 0o600)
}
