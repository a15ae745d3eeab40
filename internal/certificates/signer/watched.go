// SPDX-License-Identifier: Apache-2.0

package signer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
)

// watched is a file that is read again when it is another one. It is looked at before each use, which costs a stat call
// and misses nothing: not an atomic replacement, not a symlink that is pointed elsewhere, be it the file or a directory
// above it.
type watched[T any] struct {
	name, what string
	parse      func([]byte) (T, error)
	logger     *slog.Logger

	now atomic.Pointer[version[T]]
	mu  sync.Mutex // held while the file is read
}

type version[T any] struct {
	seen  fingerprint // of the file that was read last, also in vain
	value T
}

// fingerprint changes when a file does: ctime cannot be set back by anybody.
type fingerprint struct {
	device, inode uint64
	size          int64
	ctime, mtime  syscall.Timespec
}

func watch[T any](name, what string, parse func([]byte) (T, error), logger *slog.Logger) *watched[T] {
	return &watched[T]{name: name, what: what, parse: parse, logger: logger}
}

// get returns what is in the file, or what was in it when it could be read last.
func (w *watched[T]) get() (value T, err error) {
	now := w.now.Load()
	seen, err := look(w.name)
	switch {
	case now != nil && (err != nil || seen == now.seen):
		return now.value, nil // a file that is missing for a moment is being replaced
	case err != nil:
		return value, fmt.Errorf("looking at the %s: %w", w.what, err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()
	now = w.now.Load()
	if seen, err = look(w.name); err == nil && now != nil && now.seen == seen {
		return now.value, nil // another was faster
	}
	if err == nil {
		value, err = w.read()
	}
	switch {
	case err == nil:
	case now == nil:
		return value, fmt.Errorf("loading the %s %s: %w", w.what, w.name, err)
	default:
		w.logger.Warn("file not reloaded, the old one goes on", "file", w.name, "holds", w.what, "error", err)
		value = now.value
	}
	w.now.Store(&version[T]{seen, value}) // the look is older than the value that was read, never newer
	return value, nil
}

func (w *watched[T]) source(context.Context) (T, error) { return w.get() }

// look asks the kernel itself: os.Stat's form of the answer, four times for each certificate, is garbage to collect.
func look(name string) (fingerprint, error) {
	var st syscall.Stat_t
	for {
		switch err := syscall.Stat(name, &st); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return fingerprint{}, &os.PathError{Op: "stat", Path: name, Err: err}
		default:
			return fingerprint{st.Dev, st.Ino, st.Size, st.Ctim, st.Mtim}, nil
		}
	}
}

const maxFile = 1 << 20

func (w *watched[T]) read() (value T, err error) {
	file, err := os.Open(w.name)
	if err != nil {
		return value, err
	}
	defer func() { _ = file.Close() }() // it was only read
	data, err := io.ReadAll(io.LimitReader(file, maxFile))
	if err != nil {
		return value, err
	}
	return w.parse(data)
}
