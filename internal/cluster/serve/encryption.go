// SPDX-License-Identifier: Apache-2.0

package serve

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

// encryptionKey reads the key that seals Secrets in a plane's etcd, from the plane's directory of keys, and makes it the first time. It is never
// made anew where etcd has data: Secrets that were sealed with the lost key could not be read any more.
func encryptionKey(pki, etcd string) (string, error) {
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
