// SPDX-License-Identifier: Apache-2.0

package logrouter

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// longestLine is that of EKS's router, Buffer_Max_Size 66KB. Longer ones are passed over.
	longestLine = 66_000
	// readBytes is how much is read at once.
	readBytes = 512 << 10
)

// position is how far a log was read: up to an offset in the file with an inode.
type position struct {
	Inode  uint64 `json:"inode"`
	Offset int64  `json:"offset"`
}

// tagOf is the tag of a file, as Fluent Bit's input tail makes it of Tag kube.*.
func tagOf(path string) string {
	return "kube." + strings.ReplaceAll(strings.TrimPrefix(path, "/"), "/", ".")
}

// held is the file of a log that is being read. It stays open: the kubelet removes the file with its container.
type held struct {
	file  *os.File
	inode uint64
}

// read reads lines that follow the position of a log, and returns where they end. At the end of all there is it returns none, and the
// position as it was.
func (r *Router) read(link string) (lines []string, after position, err error) {
	from := r.positions[link]
	of := r.held[link]
	if of == nil {
		if of, err = openLog(link, from.Inode); of == nil {
			return nil, from, err
		}
		r.held[link] = of
	}
	at := from
	if at.Inode != of.inode {
		at = position{Inode: of.inode}
	}
	// The inode first: lines that are written after it was asked for are read by the next call.
	now, err := inodeOf(link)
	if err != nil {
		return nil, from, err
	}
	lines, to, err := linesOf(of.file, at.Offset, now == of.inode)
	if err != nil || len(lines) > 0 || to != at.Offset || now == of.inode {
		return lines, position{of.inode, to}, err
	}
	delete(r.held, link)
	_ = of.file.Close() // it was only read
	if now == 0 {
		return nil, from, nil
	}
	return nil, position{Inode: now}, nil
}

// openLog opens the file of a log that is to be read next: the older one with an inode, if that is there, and else the newest. Nil is
// that there is none.
func openLog(link string, inode uint64) (*held, error) {
	path, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // it is being rotated, or removed
	}
	if err != nil {
		return nil, fmt.Errorf("finding the log of a container: %w", err)
	}
	f, is, err := open(path)
	if f == nil || inode == 0 || is == inode {
		return heldOf(f, is), err
	}
	older, err := rotated(path, inode)
	if older == nil {
		return heldOf(f, is), err
	}
	_ = f.Close() // it was only looked at
	return heldOf(older, inode), err
}

func heldOf(f *os.File, inode uint64) *held {
	if f == nil {
		return nil
	}
	return &held{f, inode}
}

// inodeOf is the inode of the newest file of a log; 0 if there is none.
func inodeOf(link string) (uint64, error) {
	info, err := os.Stat(link)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("looking at the log of a container: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino, nil
	}
	return 0, nil
}

// open opens a file, and says its inode; nil if it is not there.
func open(path string) (*os.File, uint64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("opening the log of a container: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no file", path)
	}
	if err != nil {
		_ = f.Close() // it was only looked at
		return nil, 0, fmt.Errorf("looking at the log of a container: %w", err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return f, stat.Ino, nil
	}
	return f, 0, nil
}

// rotated opens the older file of a log with an inode: the kubelet renames 0.log to 0.log.TIME. Nil if it is not there any more.
func rotated(path string, inode uint64) (*os.File, error) {
	names, err := filepath.Glob(path + ".*")
	if err != nil {
		return nil, fmt.Errorf("finding the older log of a container: %w", err)
	}
	for _, name := range names {
		f, is, err := open(name)
		if err == nil && f != nil && is == inode {
			return f, nil
		}
		if f != nil {
			_ = f.Close() // it was only looked at
		}
	}
	return nil, nil //nolint:nilnil // it was compressed or removed
}

// linesOf reads lines from an offset on. The last line of a file that grows waits for its end.
func linesOf(f io.ReaderAt, from int64, growing bool) (lines []string, to int64, err error) {
	reader := bufio.NewReaderSize(io.NewSectionReader(f, from, 1<<62), longestLine+1)
	to = from
	for to-from < readBytes {
		line, err := reader.ReadSlice('\n')
		length, long := int64(len(line)), errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			var more []byte
			more, err = reader.ReadSlice('\n')
			length += int64(len(more))
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, from, fmt.Errorf("reading the log of a container: %w", err)
		}
		if err != nil && (growing || length == 0) {
			break
		}
		to += length
		if text := strings.ToValidUTF8(strings.TrimSuffix(string(line), "\n"), "\uFFFD"); !long && text != "" {
			lines = append(lines, text)
		}
	}
	return lines, to, nil
}

// readRecord reads how far logs were read. A record that is damaged is begun anew.
func readRecord(path string) (map[string]position, error) {
	positions := map[string]position{}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return positions, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading how far logs were read: %w", err)
	}
	if json.Unmarshal(raw, &positions) != nil {
		positions = map[string]position{}
	}
	return positions, nil
}

func writeRecord(path string, positions map[string]position) error {
	raw, err := json.Marshal(positions)
	if err != nil {
		return fmt.Errorf("writing how far logs were read: %w", err)
	}
	return atomicfile.Write(path, raw, 0o600)
}
