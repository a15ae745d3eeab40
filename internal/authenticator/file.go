// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"

	"muster.dev/muster/internal/identity"
)

// maxFile is how large a file of mappings may be.
const maxFile = 8 << 20

// file is the mounted file of mappings. A new version counts at once, also if the file is replaced or a symlink on the way to it
// points elsewhere, as the kubelet does for ConfigMaps. While there is no file that can be read, the last one counts.
type file struct {
	path   string
	poll   time.Duration
	change func()
	failed func()
	logger *slog.Logger

	mu     sync.Mutex
	data   []byte
	read   []identity.Mapping
	wrong  []identity.Problem
	broken bool
}

func newFile(path string, poll time.Duration, change, failed func(), logger *slog.Logger) (*file, error) {
	if poll <= 0 {
		poll = 10 * time.Second
	}
	f := &file{path: path, poll: poll, change: change, failed: failed, logger: logger}
	data, err := readBounded(path)
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
		f.wrong = problems // what cannot be read at all changes nothing but this
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
func (f *file) run(ctx context.Context) {
	poll := time.NewTicker(f.poll)
	defer poll.Stop()
	for ctx.Err() == nil {
		// The directory is watched, not the file: one that is replaced is another file.
		watcher, err := watchDirectory(filepath.Dir(f.path))
		if err != nil {
			f.logger.Debug("directory of the file of mappings not watched, it is looked at now and then", "error", err)
			f.look()
			select {
			case <-ctx.Done():
			case <-poll.C:
			}
			continue
		}
		f.look() // what changed before it was watched
		f.follow(ctx, watcher, poll.C)
		_ = watcher.Close() // it was only read
	}
}

// quiet is how long nothing may have happened to the file before it is taken for whole.
const quiet = 100 * time.Millisecond

func (f *file) follow(ctx context.Context, watcher *fsnotify.Watcher, poll <-chan time.Time) {
	settled := time.NewTimer(quiet)
	settled.Stop()
	defer settled.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-watcher.Events:
			if !ok {
				return
			}
			settled.Reset(quiet)
		case <-settled.C:
			f.look()
		case <-watcher.Errors: //nolint:errcheck // the directory is watched anew, whatever it was
			return
		case <-poll:
			f.look()
			return // the directory itself may have been replaced
		}
	}
}

// look reads the file if it can, and tells if it is another than before.
func (f *file) look() {
	data, err := readBounded(f.path)
	f.mu.Lock()
	was, same := f.broken, bytes.Equal(data, f.data)
	f.broken = err != nil
	f.mu.Unlock()
	switch {
	case err != nil:
		f.failed()
		if !was { // once for each outage
			f.logger.Warn("file of mappings not read; the last version counts on", "file", f.path, "error", err)
		}
	case !same:
		f.take(data)
		f.change()
	}
}

func readBounded(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		err = fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return data, err
}

func watchDirectory(directory string) (*fsnotify.Watcher, error) {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, err
	}
	if err := watcher.Add(directory); err != nil {
		_ = watcher.Close() // it watches nothing
		return nil, err
	}
	return watcher, nil
}
