// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"muster.dev/muster/internal/platform/atomicfile"
)

// readRecord reads the positions. A missing record has no positions. A record that is damaged is an error: with none, all
// that the files have would be compared with the log store, and what was switched off would be kept.
func readRecord(path string) (map[string]Position, error) {
	positions := map[string]Position{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return positions, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how far logs were read: %w", err)
	}
	if err := json.Unmarshal(raw, &positions); err != nil {
		return nil, fmt.Errorf("reading how far logs were read: %s: %w: remove it, and they are read from their beginning", path, err)
	}
	return positions, nil
}

func writeRecord(path string, positions map[string]Position) error {
	raw, err := json.Marshal(positions)
	if err != nil {
		return fmt.Errorf("writing how far logs were read: %w", err)
	}
	return atomicfile.Write(path, raw, 0o600)
}
