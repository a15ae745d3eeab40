// SPDX-License-Identifier: Apache-2.0

// Package configsource gathers a machine's configuration from its sources: its user data, files, directories and
// standard input, in the order that they are named.
package configsource

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
)

// UserData is the source that nodeadm's flag calls so: the instance metadata service's data for this machine.
const UserData = "imds://user-data"

// Stdin is standard input.
const Stdin = "-"

// Readers are what sources are read from.
type Readers struct {
	// UserData asks the instance metadata service; it returns nothing if the machine was launched without any.
	UserData func(context.Context) ([]byte, error)
	Stdin    io.Reader
}

// Found is what sources hold.
type Found struct {
	// Documents are NodeConfigs, in order.
	Documents []nodeconfig.Source
	// Parts are all parts, of other types too, in order.
	Parts []userdata.Part
	// Doubts are about parts that may have been meant otherwise.
	Doubts []string
}

// Load reads sources by their names: imds://user-data, file://PATH or PATH of a file or a directory, or - for standard
// input. Of a directory all files are read whose names end in .yaml, .yml or .json, in the order of their names, and
// none is not an error.
func Load(ctx context.Context, names []string, readers Readers) (Found, error) {
	var all Found
	for _, name := range names {
		parts, err := load(ctx, name, readers)
		if err != nil {
			return Found{}, err
		}
		documents, doubts := userdata.NodeConfigs(parts)
		all.Documents = append(all.Documents, documents...)
		all.Doubts = append(all.Doubts, doubts...)
		all.Parts = append(all.Parts, parts...)
	}
	return all, nil
}

// Check returns an error if a source cannot have this name. It does not read the source.
func Check(name string) error {
	scheme, rest, ok := strings.Cut(name, "://")
	switch {
	case name == "":
		return fmt.Errorf("a source of configuration has an empty name; name %s, file://PATH, PATH or - for standard input", UserData)
	case name == UserData, !ok, scheme == "file" && rest != "":
		return nil
	}
	return fmt.Errorf("there is no source %q; there are %s, file://PATH, PATH and - for standard input", name, UserData)
}

func load(ctx context.Context, name string, readers Readers) ([]userdata.Part, error) {
	if err := Check(name); err != nil {
		return nil, err
	}
	switch name {
	case UserData:
		raw, err := readers.UserData(ctx)
		if err != nil {
			return nil, err
		}
		return userdata.Read(raw)
	case Stdin:
		return read("standard input", readers.Stdin)
	}
	path := strings.TrimPrefix(name, "file://")
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("reading configuration from %s: %w", path, err)
	}
	if !info.IsDir() {
		return readFile(path)
	}
	entries, err := os.ReadDir(path) // sorted by name
	if err != nil {
		return nil, fmt.Errorf("reading configuration from %s: %w", path, err)
	}
	var parts []userdata.Part
	for _, entry := range entries {
		if entry.IsDir() || !slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(entry.Name()))) {
			continue
		}
		found, err := readFile(filepath.Join(path, entry.Name()))
		if err != nil {
			return nil, err
		}
		parts = append(parts, found...)
	}
	return parts, nil
}

func readFile(path string) ([]userdata.Part, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading configuration from %s: %w", path, err)
	}
	defer func() { _ = file.Close() }() // it was only read
	return read(path, file)
}

func read(name string, from io.Reader) ([]userdata.Part, error) {
	raw, err := io.ReadAll(io.LimitReader(from, userdata.MaxUnpacked+1))
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", name, err)
	}
	if len(raw) > userdata.MaxUnpacked {
		return nil, fmt.Errorf("%s has more than the %d bytes that are read at most", name, userdata.MaxUnpacked)
	}
	return userdata.ReadFile(name, raw)
}
