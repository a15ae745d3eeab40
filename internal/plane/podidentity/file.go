// SPDX-License-Identifier: Apache-2.0

package podidentity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/platform/atomicfile"
)

// WriteFile tells the pod identity webhook of a cluster which service accounts have an association. A file that says so already is not written again.
func WriteFile(path string, accounts []ServiceAccount) error {
	if accounts == nil {
		accounts = []ServiceAccount{}
	}
	raw, err := json.Marshal(map[string]any{"identities": accounts})
	if err != nil {
		return fmt.Errorf("encoding associations: %w", err)
	}
	raw = append(raw, '\n')
	if has, err := os.ReadFile(path); err == nil && bytes.Equal(has, raw) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading associations: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return fmt.Errorf("making directory of associations: %w", err)
	}
	return atomicfile.Write(path, raw, 0o640) // the group is the webhook's, where it has a user of its own
}
