// SPDX-License-Identifier: Apache-2.0

// Package encryptionkey keeps the key that seals Secrets in a plane's etcd. The key is 32 random bytes in a file that
// its owner alone reads. A key is never made anew where etcd has data: Secrets that the lost key sealed could not be
// read any more. Then, and if the file is damaged, the error says what to restore.
package encryptionkey

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
)

// Ensure reads the key from a plane's directory of keys, in base64, and makes it the first time, before there is data
// in the directory of etcd.
func Ensure(pki, etcd string) (string, error) {
	path := filepath.Join(pki, "encryption.key")
	raw, err := os.ReadFile(path)
	if err == nil {
		key := strings.TrimSpace(string(raw))
		if decoded, err := base64.StdEncoding.DecodeString(key); err != nil || len(decoded) != 32 {
			return "", fmt.Errorf("%s is damaged: it must be 32 bytes in base64; restore it from a backup", path)
		}
		return key, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("reading encryption key: %w", err)
	}
	if _, err := os.Stat(filepath.Join(etcd, "member")); err == nil {
		return "", fmt.Errorf("%s is missing, but etcd has data in %s that it sealed: restore it from a backup, or remove everything with `muster down --delete`", path, etcd)
	}
	key := make([]byte, 32)
	if _, err := rand.Read(key); err != nil {
		return "", fmt.Errorf("making encryption key: %w", err)
	}
	encoded := base64.StdEncoding.EncodeToString(key)
	return encoded, atomicfile.Write(path, []byte(encoded+"\n"), 0o600)
}
