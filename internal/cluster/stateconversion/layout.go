// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"muster.dev/muster/internal/platform/atomicfile"
	"muster.dev/muster/internal/platform/statedir"
)

// oldest is the oldest layout that can be converted; the first step begins there.
//
//	1: one etcd for both planes (no file said so); v0.1.0
//	2: an etcd for each plane; was never released
//	3: an account with many clusters, each in a directory of its own; was never released
//	4: VPCs with subnets, the network of each cluster in a file, an audit log for each instance of an API server; was never released
const oldest = 4

// firstConfig is where a state directory of layout 1 kept its one cluster.
const firstConfig = "muster.yaml"

// writer is the record of who wrote a state directory.
type writer struct {
	// Release of Muster that wrote the directory last, and the layout that the release has or brings the directory to.
	Release string `json:"release"`
	Layout  int    `json:"layout"`
	// Before is the release that wrote the directory before it was converted last, if that is known, and From the layout
	// that it had.
	Before string `json:"before,omitempty"`
	From   int    `json:"from"`
}

// writerFile has that record.
func writerFile(dir statedir.Dir) string { return filepath.Join(string(dir), "written.json") }

// found is what a state directory says of itself. Its layout is 0 if the directory is not in use, and its writer has no
// release if that is unknown.
type found struct {
	layout int
	by     writer
}

// due is what a release has to do with a state directory.
type due struct {
	// first is the step that is next; the number of steps if none is due.
	first int
	// save says that the records are to be saved.
	save bool
	// by is the writer, as it is to be recorded; the zero value for a directory that is not in use.
	by writer
}

// decide is what a release with some steps has to do with a directory. The error says why it can do nothing, to be read
// after the directory's path.
func decide(is found, steps int, release string) (due, error) {
	newest := oldest + steps
	switch {
	case is.layout == 0:
		return due{first: steps}, nil
	case is.layout < oldest:
		return due{}, errors.New("was made by an earlier Muster and cannot be converted: remove it with `muster down --delete`, or choose another --state-dir")
	case is.layout > newest || is.by.Layout > newest:
		who, use := "Muster "+is.by.Release, "Muster "+is.by.Release
		if is.by.Release == "" {
			who, use = "a newer Muster", "the Muster that wrote it"
		}
		return due{}, fmt.Errorf("was written by %s (layout %d), and this is Muster %s, which knows layout %d: use %s or a newer one",
			who, max(is.layout, is.by.Layout), release, newest, use)
	}
	by := writer{Release: release, Layout: newest, Before: is.by.Release, From: is.layout}
	cut := is.layout < is.by.Layout // a conversion was cut short, be it another release's
	if cut || is.layout == newest && is.by.Layout == newest {
		by.Before, by.From = is.by.Before, is.by.From
	}
	return due{first: is.layout - oldest, save: is.layout < newest && !cut, by: by}, nil
}

// look reads what a state directory says of itself.
func look(dir statedir.Dir) (found, error) {
	raw, err := os.ReadFile(dir.Layout())
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Stat(filepath.Join(string(dir), firstConfig)); err == nil {
			return found{layout: 1}, nil
		}
		return found{}, nil
	}
	if err != nil {
		return found{}, fmt.Errorf("reading the layout of state directory %s: %w", dir, err)
	}
	text := strings.TrimSpace(string(raw))
	layout, err := strconv.Atoi(text)
	if err != nil || layout < 1 {
		return found{}, fmt.Errorf("%s is damaged: it holds %q and must hold the number of a layout; restore it from a backup", dir.Layout(), text)
	}
	by, err := readWriter(dir)
	return found{layout: layout, by: by}, err
}

// aRelease is what a release is called, which is also a part of a file's name.
var aRelease = regexp.MustCompile(`^v[0-9A-Za-z.+-]{1,80}$`)

func readWriter(dir statedir.Dir) (writer, error) {
	raw, err := os.ReadFile(writerFile(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return writer{}, nil
	}
	if err != nil {
		return writer{}, fmt.Errorf("reading who wrote state directory %s: %w", dir, err)
	}
	var by writer
	if err = json.Unmarshal(raw, &by); err == nil && (!aRelease.MatchString(by.Release) || by.Before != "" && !aRelease.MatchString(by.Before) || by.From < oldest || by.Layout < by.From) {
		err = fmt.Errorf("it names the releases %q and %q, from layout %d to %d", by.Before, by.Release, by.From, by.Layout)
	}
	if err != nil {
		return writer{}, fmt.Errorf("%s is damaged (%w): restore it from a backup", writerFile(dir), err)
	}
	return by, nil
}

func writeWriter(dir statedir.Dir, by writer) error {
	raw, err := json.Marshal(by)
	if err != nil {
		return fmt.Errorf("encoding who wrote state directory %s: %w", dir, err)
	}
	return atomicfile.Write(writerFile(dir), append(raw, '\n'), 0o600)
}

func writeLayout(dir statedir.Dir, layout int) error {
	return atomicfile.Write(dir.Layout(), []byte(strconv.Itoa(layout)+"\n"), 0o600)
}
