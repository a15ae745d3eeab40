// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/platform/watchfile"
)

// maxFile is how large a file of mappings may be.
const maxFile = 8 << 20

// file is the mounted file of mappings. A new version counts at once, also if the file is replaced or a symlink on the
// way to it points elsewhere, as the kubelet does for ConfigMaps. While it cannot be read, the last version counts;
// when it is gone, it maps nobody, as a program that starts without it lets nobody in either.
type file struct {
	source watchfile.File
	change func()
	failed func()
	logger *slog.Logger

	mu     sync.Mutex
	data   []byte
	read   []identity.Mapping
	wrong  []identity.Problem
	broken bool
	gone   bool
}

// goneAfter is how long a file must be away to be gone: people also replace files by removing them first.
const goneAfter = time.Second

func newFile(path string, poll time.Duration, change, failed func(), logger *slog.Logger) (*file, error) {
	if poll <= 0 {
		poll = 10 * time.Second
	}
	f := &file{
		source: watchfile.File{Path: path, What: "file of mappings", Poll: poll, MaxSize: maxFile, Logger: logger},
		change: change, failed: failed, logger: logger,
	}
	data, err := f.source.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the file of mappings: %w", err)
	}
	f.take(data)
	return f, nil
}

func (f *file) take(data []byte) {
	mappings, problems := identity.ParseFile(data)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.data = data
	if len(mappings) == 0 && len(f.read) > 0 && hopeless(problems) {
		f.wrong = problems // an unreadable file changes nothing but this
		return
	}
	f.read, f.wrong = mappings, problems
}

// hopeless tells that nothing of the file could be read.
func hopeless(problems []identity.Problem) bool {
	for _, p := range problems {
		if p.Entry == "" {
			return true
		}
	}
	return false
}

// mappings are those of the last version that could be read.
func (f *file) mappings() ([]identity.Mapping, []identity.Problem) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read, f.wrong
}

// run follows the file until ctx is done.
func (f *file) run(ctx context.Context) { f.source.Run(ctx, func() { f.look(ctx) }) }

// look reads the file if it can, and reports whether it has changed.
func (f *file) look(ctx context.Context) {
	data, err := f.source.Read()
	if errors.Is(err, fs.ErrNotExist) {
		timer := time.NewTimer(goneAfter)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		data, err = f.source.Read()
	}
	gone := errors.Is(err, fs.ErrNotExist)
	f.mu.Lock()
	broken, wasGone, same := f.broken, f.gone, bytes.Equal(data, f.data)
	f.broken, f.gone = err != nil, gone
	f.mu.Unlock()
	if err != nil {
		f.failed()
	}
	switch {
	case gone && !wasGone:
		f.logger.Warn("file of mappings is gone; nobody is mapped by it any more", "file", f.source.Path)
		f.leave()
		f.change()
	case err != nil && !broken: // once for each outage
		f.logger.Warn("file of mappings not read; the last version counts on", "file", f.source.Path, "error", err)
	case err == nil && (!same || wasGone):
		f.take(data)
		f.change()
	}
}

// leave forgets what the file said.
func (f *file) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.read = nil
	f.wrong = []identity.Problem{{Source: identity.SourceFile, Saw: "is gone", Fix: "put it back at " + f.source.Path, Unused: true}}
}
