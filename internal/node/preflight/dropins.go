// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// dropInDirs are where systemd looks for what changes a unit (systemd.unit(5)).
func dropInDirs() []string {
	return []string{"/etc/systemd/system", "/run/systemd/system", "/usr/local/lib/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"}
}

// maxDropIn is far more than one has.
const maxDropIn = 64 << 10

// deciding are the settings of a service that say which program is started, as which user and with which environment
// (systemd.exec(5)).
var deciding = regexp.MustCompile(`(?m)^[ \t]*(Exec[A-Za-z]+|Environment|EnvironmentFile|Type|User|Group|RootDirectory|RootImage|PrivateMounts|MountFlags)[ \t]*=`)

// DropIns returns the drop-ins of kubelet.service, from all directories of units. A file that is empty, or a link to
// /dev/null, hides a drop-in of the same name and does not count; drop-ins that a join wrote are in its ledger and do
// not count either.
func (s system) DropIns() ([]DropIn, error) {
	own, err := s.made()
	if err != nil {
		return nil, err
	}
	var found []DropIn
	seen := map[string]bool{} // by name: the first directory wins
	for _, dir := range dropInDirs() {
		dir = filepath.Join(s.config.Root, dir, "kubelet.service.d")
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking for drop-ins: %w", err)
		}
		for _, entry := range entries {
			path := filepath.Join(dir, entry.Name())
			named := strings.TrimPrefix(path, s.config.Root)
			if !strings.HasSuffix(path, ".conf") || seen[entry.Name()] {
				continue
			}
			seen[entry.Name()] = true
			if slices.Contains(own, named) {
				continue
			}
			text, err := readAtMost(path, maxDropIn)
			if err != nil {
				return nil, fmt.Errorf("reading a drop-in: %w", err)
			}
			if strings.TrimSpace(text) != "" {
				found = append(found, DropIn{Path: named, Decides: deciding.MatchString(text)})
			}
		}
	}
	return found, nil
}

// made are the files that an earlier muster join made.
func (s system) made() ([]string, error) {
	raw, err := os.ReadFile(filepath.Join(s.config.Root, s.config.Ledger))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the ledger of muster join: %w", err)
	}
	var ledger struct {
		Files []string `json:"files"`
	}
	if err := json.Unmarshal(raw, &ledger); err != nil {
		return nil, fmt.Errorf("reading the ledger of muster join: %w", err)
	}
	return ledger.Files, nil
}

func readAtMost(path string, limit int64) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	raw, err := io.ReadAll(io.LimitReader(file, limit))
	return string(raw), err
}
