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

// read reads lines that follow a position in a log, and returns where they end. No lines and the same position is that there are none.
func read(link string, from position) ([]string, position, error) {
	path, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, from, nil // it is being rotated, or removed
	}
	if err != nil {
		return nil, from, fmt.Errorf("finding the log of a container: %w", err)
	}
	f, inode, err := open(path)
	if f == nil {
		return nil, from, err
	}
	defer func() { _ = f.Close() }() // it was only read
	if from.Inode == inode || from.Inode == 0 {
		lines, to, err := linesOf(f, from.Offset, true)
		return lines, position{inode, to}, err
	}
	older, err := rotated(path, from.Inode)
	if older == nil {
		return nil, position{Inode: inode}, err
	}
	defer func() { _ = older.Close() }() // likewise
	lines, to, err := linesOf(older, from.Offset, false)
	if err == nil && len(lines) == 0 && to == from.Offset {
		return nil, position{Inode: inode}, nil
	}
	return lines, position{from.Inode, to}, err
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
		return map[string]position{}, nil
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
