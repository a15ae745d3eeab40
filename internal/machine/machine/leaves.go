// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"muster.dev/muster/internal/platform/atomicfile"
)

// SetLeaves has an instance be told texts of instance metadata, by their path below latest/meta-data/, beside those that
// follow from its record. Without leaves earlier ones go.
func (s *Store) SetLeaves(id string, leaves map[string]string) error {
	path := filepath.Join(s.Path(id), LeavesFile)
	if len(leaves) == 0 {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing instance metadata of machine %s: %w", id, err)
		}
		return nil
	}
	raw, err := json.Marshal(leaves)
	if err != nil {
		return fmt.Errorf("encoding instance metadata of machine %s: %w", id, err)
	}
	if err := atomicfile.Replace(path, raw, 0o600); err != nil {
		return fmt.Errorf("writing instance metadata of machine %s: %w", id, err)
	}
	return nil
}

// Leaves are the texts that SetLeaves had last; nil if there are none.
func (s *Store) Leaves(id string) (map[string]string, error) {
	raw, err := os.ReadFile(filepath.Join(s.Path(id), LeavesFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // a missing file is not an error
	}
	if err != nil {
		return nil, fmt.Errorf("reading instance metadata of machine %s: %w", id, err)
	}
	var leaves map[string]string
	if err := json.Unmarshal(raw, &leaves); err != nil {
		return nil, fmt.Errorf("reading instance metadata of machine %s: %w", id, err)
	}
	return leaves, nil
}
