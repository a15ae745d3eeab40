// SPDX-License-Identifier: Apache-2.0

package hostcheck

import (
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

func TestDisk(t *testing.T) {
	says(t, Disk("/proc/none/of/these"), "the file system of /proc has 0 MiB left", "--state-dir") // it has no room at all
	if err := Disk(statedir.Dir(t.TempDir()) + "/not/yet/there"); err != nil {
		says(t, err, "free some space") // a machine whose disk really is that full
	}
}
