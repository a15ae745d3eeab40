// SPDX-License-Identifier: Apache-2.0

package encryptionkey

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

// says fails unless the error says all of it.
func says(t *testing.T, err error, want ...string) {
	t.Helper()
	for _, text := range want {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("error is %v, want one with %q", err, text)
		}
	}
}

func TestEncryptionKey(t *testing.T) {
	dir, other := statedir.Cluster(t.TempDir()), statedir.Cluster(t.TempDir())
	path := filepath.Join(dir.PKI(), "encryption.key")
	if err := errors.Join(os.MkdirAll(dir.PKI(), 0o700), os.MkdirAll(other.PKI(), 0o700)); err != nil {
		t.Fatal(err)
	}
	key, err := Ensure(dir.PKI(), dir.Etcd())
	if err != nil {
		t.Fatal(err)
	}
	if raw, err := base64.StdEncoding.DecodeString(key); err != nil || len(raw) != 32 {
		t.Errorf("key has %d bytes, %v", len(raw), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%s: %v, %v; want mode 0600", path, info, err)
	}
	if err := os.MkdirAll(filepath.Join(dir.Etcd(), "member"), 0o700); err != nil {
		t.Fatal(err)
	}
	if again, err := Ensure(dir.PKI(), dir.Etcd()); err != nil || again != key {
		t.Errorf("the second time: another key, or %v", err)
	}
	if others, err := Ensure(other.PKI(), other.Etcd()); err != nil || others == key {
		t.Errorf("another cluster: the same key, or %v", err)
	}
	for _, content := range []string{"", "not base64!", base64.StdEncoding.EncodeToString(make([]byte, 31))} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = Ensure(dir.PKI(), dir.Etcd())
		says(t, err, path+" is damaged", "backup")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	_, err = Ensure(dir.PKI(), dir.Etcd())
	says(t, err, path+" is missing, but etcd has data", "backup")
	if _, err := os.Stat(path); err == nil {
		t.Error("a key was made where etcd has data sealed with another")
	}
}
