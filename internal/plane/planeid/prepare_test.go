// SPDX-License-Identifier: Apache-2.0

package planeid

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMayRun(t *testing.T) {
	dir := t.TempDir()
	if err := mayRun(dir); err != nil {
		t.Errorf("programs that are missing: %v", err)
	}
	path := filepath.Join(dir, "etcd")
	for mode, may := range map[os.FileMode]bool{0o755: true, 0o555: true, 0o700: false, 0o750: false, 0o754: false} {
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := mayRun(dir); (err == nil) != may || err != nil && !strings.Contains(err.Error(), "chmod o+rx "+path) {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}
