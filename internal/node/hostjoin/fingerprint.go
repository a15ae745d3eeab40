// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
)

// Fingerprints are what files are known again by: of a file the hash of its content, of a link what it leads to.
const (
	ofContent = "sha256:"
	ofLink    = "link:"
)

// fingerprint of what is about to be placed. A copy has none yet, since reading a program of a hundred megabytes takes
// its time, and a secret never has one.
func (a artifact) fingerprint() string {
	switch {
	case a.secret || a.path == authority: // authorities change by themselves (nodecerts.RefreshAuthorities)
		return ""
	case a.linkTo != "":
		return ofLink + a.linkTo
	case a.copyOf != "":
		return ""
	}
	sum := sha256.Sum256(a.content)
	return ofContent + hex.EncodeToString(sum[:])
}

// fingerprint of what is on the disk; empty if nothing is.
func (d disk) fingerprint(path string) (string, error) {
	name := d.at(path)
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("looking at %s: %w", path, err)
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := os.Readlink(name)
		return ofLink + target, err
	case !info.Mode().IsRegular():
		return info.Mode().Type().String(), nil
	}
	file, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	defer func() { _ = file.Close() }()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return ofContent + hex.EncodeToString(sum.Sum(nil)), nil
}

// note enters what a file is about to be, beside what it may still be: a join that is killed leaves one of the two.
func (l *Ledger) note(path, mark string) {
	if mark == "" || slices.Contains(l.Hashes[path], mark) {
		return
	}
	if l.Hashes == nil {
		l.Hashes = map[string][]string{}
	}
	l.Hashes[path] = append(slices.Clip(l.Hashes[path]), mark)
}

// settle enters what a file is by now, and nothing else.
func (l *Ledger) settle(path, mark string) {
	delete(l.Hashes, path)
	l.note(path, mark)
}

// replaced are files that somebody has put in the place of the join's own since. They are theirs.
func (l Ledger) replaced(d disk) ([]string, error) {
	var found []string
	for _, path := range l.Files {
		known := l.Hashes[path]
		if len(known) == 0 { // of an older muster, or somebody else writes it: the kubelet, containerd
			continue
		}
		mark, err := d.fingerprint(path)
		if err != nil {
			return nil, err
		}
		if mark != "" && !slices.Contains(known, mark) {
			found = append(found, path)
		}
	}
	return found, nil
}

// checkHashes refuses what no join writes down.
func (l Ledger) checkHashes() error {
	if len(l.Hashes) > maxEntries {
		return fmt.Errorf("it lists more than %d things", maxEntries)
	}
	for path, marks := range l.Hashes {
		if !l.lists(path) {
			return fmt.Errorf("it knows the content of %q, which it does not list", path)
		}
		for _, mark := range marks {
			raw, err := hex.DecodeString(strings.TrimPrefix(mark, ofContent))
			if !strings.HasPrefix(mark, ofLink) && (err != nil || len(raw) != sha256.Size) {
				return fmt.Errorf("it knows %q by %q, which is not a hash", path, mark)
			}
		}
	}
	return nil
}

// fingerprints reads what was copied. Files that cannot be read stay unknown.
func (d disk) fingerprints(ctx context.Context, copies []artifact) map[string]string {
	marks := map[string]string{}
	for _, a := range copies {
		if ctx.Err() != nil {
			break
		}
		if mark, err := d.fingerprint(a.path); err == nil {
			marks[a.path] = mark
		}
	}
	return marks
}

// chunk is how much of two programs is compared at a time.
const chunk = 1 << 20

// equalFiles compares contents. Metadata of a file, its size apart, is not evidence: a process that changes a program
// can set its time.
func equalFiles(a, b string) (bool, error) {
	var files [2]*os.File
	var sizes [2]int64
	for i, path := range []string{a, b} {
		file, err := os.Open(path)
		if err != nil {
			return false, err
		}
		defer func() { _ = file.Close() }()
		info, err := file.Stat()
		if err != nil {
			return false, err
		}
		files[i], sizes[i] = file, info.Size()
	}
	if sizes[0] != sizes[1] {
		return false, nil
	}
	first, second := make([]byte, chunk), make([]byte, chunk)
	for {
		n, err := io.ReadFull(files[0], first)
		m, otherErr := io.ReadFull(files[1], second)
		if !bytes.Equal(first[:n], second[:m]) {
			return false, nil
		}
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
			return errors.Is(otherErr, io.EOF) || errors.Is(otherErr, io.ErrUnexpectedEOF), nil
		case err != nil:
			return false, err
		case otherErr != nil:
			return false, otherErr
		}
	}
}
