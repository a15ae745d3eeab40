// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheSecondServiceIsToldOfTheFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	release, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	_, err = Lock(path)
	if !errors.Is(err, ErrRunning) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "muster status") {
		t.Errorf("locked twice: %v", err)
	}
	release()
	if _, err := Lock(filepath.Join(path, "below")); err == nil || errors.Is(err, ErrRunning) {
		t.Errorf("a file that cannot be: %v", err)
	}
}
