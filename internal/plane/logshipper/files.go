// SPDX-License-Identifier: Apache-2.0

package logshipper

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// A file is known by its first whole lines that have leastBeginning bytes together. At most mostBeginning bytes count.
	leastBeginning = 128
	mostBeginning  = 4 << 10
)

// file is one of the files of a log.
type file struct {
	path string
	id   string
}

// state is how a file is: it has nothing new while it stays so.
type state struct {
	inode   uint64
	size    int64
	changed time.Time
}

// stateOf looks at a file; the zero state if it cannot.
func stateOf(path string) state {
	info, err := os.Stat(path)
	if err != nil {
		return state{}
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return state{}
	}
	return state{stat.Ino, info.Size(), info.ModTime()}
}

// files lists the files of a log that can be told from others, the oldest first. Growing reports whether the last one is
// still written.
func files(s Source) (found []file, growing bool, err error) {
	found, err = settled(func() ([]file, error) { return listed(s) })
	return found, len(found) > 0 && found[len(found)-1].path == s.Path, err
}

// mostLists is how often the files of a log are listed until two lists are the same.
const mostLists = 10

// settled lists the files of a log until nothing has changed: a file of a log that is rotated meanwhile would be under
// neither name, and look as if it had been removed.
func settled(list func() ([]file, error)) ([]file, error) {
	found, err := list()
	for range mostLists {
		if err != nil {
			return nil, err
		}
		was := found
		if found, err = list(); err == nil && slices.Equal(was, found) {
			return found, nil
		}
	}
	return nil, cmp.Or(err, errors.New("its files have other names each time that they are listed: its component renames them"))
}

func listed(s Source) ([]file, error) {
	names, err := older(s)
	if err != nil {
		return nil, err
	}
	var found []file
	for _, name := range append(names, s.Path) {
		id, err := identityOf(s, name)
		if err != nil {
			return nil, err
		}
		if id == "" {
			continue
		}
		if len(found) > 0 && found[len(found)-1].id == id {
			found = found[:len(found)-1] // it is being copied
		}
		found = append(found, file{name, id})
	}
	return found, nil
}

// older lists the files that a log had before, the oldest first.
func older(s Source) ([]string, error) {
	if s.Copied {
		return []string{s.Path + ".1"}, nil
	}
	// gopkg.in/natefinch/lumberjack's names sort by time.
	dir, prefix := filepath.Dir(s.Path), strings.TrimSuffix(filepath.Base(s.Path), ".log")+"-"
	entries, err := os.ReadDir(dir) // sorted
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listing the files of a log: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if name := entry.Name(); strings.HasPrefix(name, prefix) && strings.HasSuffix(name, ".log") {
			names = append(names, filepath.Join(dir, name))
		}
	}
	return names, nil
}

// open opens a file of a log; nil if it is not there.
func open(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a component may have put anything there
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it was renamed, and is looked for again
	}
	if err != nil {
		return nil, fmt.Errorf("opening a log: %w", err)
	}
	return f, nil
}

// identityOf is the identity of the file with a path; "" if it has too little to have one, or is not there.
func identityOf(s Source, path string) (string, error) {
	f, err := open(path)
	if f == nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // it was only read
	return identity(s, f)
}

func identity(s Source, f *os.File) (string, error) {
	block := make([]byte, mostBeginning)
	n, err := f.ReadAt(block, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("reading a log: %w", err)
	}
	begins := beginning(block[:n])
	if begins == nil {
		return "", nil
	}
	sum := sha256.New()
	_, _ = io.WriteString(sum, s.Path+"\n") // a hash takes everything
	_, _ = sum.Write(begins)
	return hex.EncodeToString(sum.Sum(nil)[:16]), nil
}

// beginning is what tells a file from others, which is the same however much is written after it; nil if there is not
// enough yet.
func beginning(block []byte) []byte {
	if len(block) < leastBeginning {
		return nil
	}
	if end := bytes.IndexByte(block[leastBeginning-1:], '\n'); end >= 0 {
		return block[:leastBeginning+end]
	}
	if len(block) == mostBeginning {
		return block
	}
	return nil
}
