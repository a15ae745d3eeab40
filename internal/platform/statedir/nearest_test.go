// SPDX-License-Identifier: Apache-2.0

package statedir_test

import (
	"path/filepath"
	"testing"

	"muster.dev/muster/internal/platform/statedir"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	there := t.TempDir()
	for dir, want := range map[string]string{there: there, filepath.Join(there, "a/b"): there, "/no/such": "/", "/": "/"} {
		if got := statedir.Nearest(statedir.Dir(dir)); got != want {
			t.Errorf("%s: %s, want %s", dir, got, want)
		}
	}
}
