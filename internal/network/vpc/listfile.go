// SPDX-License-Identifier: Apache-2.0

package vpc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"muster.dev/muster/internal/platform/atomicfile"
)

// listVersion is the version of the format of lists.
const listVersion = 1

// listFile is a file below a VPC's directory that holds a list. The processes of the VPC read it again whenever it
// changes.
type listFile[T any] struct {
	name string // of the file
	key  string // of the list in it
	what string // is in it, for errors
	most int    // bytes
	fix  string // the end of an error about what the file holds
	// compare is the order of the list, equal reports whether two elements are the same in all.
	compare func(a, b T) int
	equal   func(a, b T) bool
	// validate checks the elements, each alone and beside the others: nothing of one is another's.
	validate func(n *Network, all []T) error
}

func (f listFile[T]) path(n *Network) string { return filepath.Join(n.dir, f.name) }

// read returns the list; there is nothing in a file that is not there.
func (f listFile[T]) read(n *Network) ([]T, error) {
	raw, err := os.ReadFile(f.path(n))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", f.what, err)
	}
	current, err := n.reload() // another process may have changed the subnets
	if err != nil {
		return nil, err
	}
	return f.parse(current, raw)
}

func (f listFile[T]) parse(n *Network, raw []byte) ([]T, error) {
	all, err := f.decode(raw)
	if err == nil {
		err = f.validate(n, all)
	}
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w%s", f.path(n), err, f.fix)
	}
	return all, nil
}

func (f listFile[T]) decode(raw []byte) ([]T, error) {
	if len(raw) > f.most {
		return nil, fmt.Errorf("it has %d bytes, and %d are allowed", len(raw), f.most)
	}
	var content map[string]json.RawMessage
	if err := json.Unmarshal(raw, &content); err != nil {
		return nil, err
	}
	version := 0
	if raw, ok := content["version"]; !ok {
		return nil, fmt.Errorf("version is missing, want %d", listVersion)
	} else if err := json.Unmarshal(raw, &version); err != nil {
		return nil, fmt.Errorf("version: %w", err)
	}
	if version != listVersion {
		return nil, fmt.Errorf("version is %d, want %d", version, listVersion)
	}
	var all []T
	if list, ok := content[f.key]; ok {
		if err := json.Unmarshal(list, &all); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// change writes the list as it is after a change, and reports whether that is another. The lock is held.
func (f listFile[T]) change(n *Network, change func([]T) []T) (changed bool, err error) {
	before, err := f.read(n)
	if err != nil {
		return false, err
	}
	after := change(slices.Clone(before))
	if slices.EqualFunc(before, after, f.equal) {
		return false, nil
	}
	slices.SortFunc(after, f.compare)
	current, err := n.reload()
	if err != nil {
		return false, err
	}
	if err := f.validate(current, after); err != nil {
		return false, fmt.Errorf("changing %s: %w", f.what, err)
	}
	raw, err := json.Marshal(map[string]any{"version": listVersion, f.key: after})
	if err != nil {
		return false, fmt.Errorf("encoding %s: %w", f.what, err)
	}
	raw = append(raw, '\n')
	if len(raw) > f.most {
		return false, fmt.Errorf("changing %s: they take %d bytes, and %d are allowed", f.what, len(raw), f.most)
	}
	return true, atomicfile.Write(f.path(n), raw, 0o600)
}
