// SPDX-License-Identifier: Apache-2.0

// Package watchfile follows a file that is replaced, as people and the kubelet replace it: by a rename, or by pointing
// a symlink on the way to it elsewhere.
package watchfile

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// quiet is how long nothing may have happened to a file before it is taken for whole, unless the file says otherwise.
const quiet = 100 * time.Millisecond

// File is what is followed.
type File struct {
	Path string
	// Its name for the log: "list of machines".
	What string
	// Poll is how often it is looked at even if nothing tells that it changed, and its directory watched anew.
	Poll time.Duration
	// Glance is how often it is looked at besides; not at all if 0.
	Glance time.Duration
	// MaxSize is how many bytes it may have.
	MaxSize int64
	// Quiet is how long nothing may have happened to it before it is taken for whole; 100 ms if 0. A file that is only
	// ever replaced needs less.
	Quiet  time.Duration
	Logger *slog.Logger
	// Watch watches a directory; with inotify if nil.
	Watch func(directory string) (*fsnotify.Watcher, error)
}

// Read reads the whole file. A file that is not regular, or larger than the limit, is an error.
func (f File) Read() ([]byte, error) {
	file, err := os.Open(f.Path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", f.Path)
	}
	data, err := io.ReadAll(io.LimitReader(file, f.MaxSize+1))
	if err == nil && int64(len(data)) > f.MaxSize {
		size, unit := f.MaxSize>>20, "MiB"
		if size == 0 {
			size, unit = f.MaxSize>>10, "KiB"
		}
		err = fmt.Errorf("%s has more than %d %s", f.Path, size, unit)
	}
	return data, err
}

// Run has somebody look at the file when it may have changed, until ctx is done. The first look is at once.
func (f File) Run(ctx context.Context, look func()) {
	if f.Watch == nil {
		f.Watch = watchDirectory
	}
	if f.Quiet == 0 {
		f.Quiet = quiet
	}
	directory := filepath.Dir(f.Path)
	poll := time.NewTicker(f.Poll)
	defer poll.Stop()
	warned := false
	for ctx.Err() == nil {
		// The directory is watched, not the file: one that is replaced is another file.
		watcher, err := f.Watch(directory)
		if err != nil {
			if !warned {
				f.Logger.Warn("directory not watched, the file is looked at now and then", "what", f.What, "directory", directory,
					"every", f.unwatched().String(), "error", err)
			}
			warned = true
			f.glance(ctx, poll.C, look)
			continue
		}
		warned = false
		look() // a change before it was watched
		f.follow(ctx, watcher, poll.C, look)
		_ = watcher.Close() // it was only read
	}
}

// alone is how often a file is looked at whose directory cannot be watched: whoever was promised to hear at once need
// not wait for the next poll.
const alone = time.Second

// unwatched is how often the file is looked at while its directory cannot be watched.
func (f File) unwatched() time.Duration {
	every := min(alone, f.Poll)
	if f.Glance > 0 {
		every = min(every, f.Glance)
	}
	return every
}

// glance looks at the file until it is time to try once more to watch its directory.
func (f File) glance(ctx context.Context, poll <-chan time.Time, look func()) {
	again := time.NewTicker(f.unwatched())
	defer again.Stop()
	for look(); ; look() {
		select {
		case <-ctx.Done():
			return
		case <-poll:
			return
		case <-again.C:
		}
	}
}

// follow looks at the file after events, until the watch may be of no use any more.
func (f File) follow(ctx context.Context, watcher *fsnotify.Watcher, poll <-chan time.Time, look func()) {
	settled := time.NewTimer(f.Quiet)
	settled.Stop()
	defer settled.Stop()
	var glance <-chan time.Time
	if f.Glance > 0 {
		ticker := time.NewTicker(f.Glance)
		defer ticker.Stop()
		glance = ticker.C
	}
	for {
		select {
		case <-ctx.Done():
			return
		case _, ok := <-watcher.Events:
			if !ok {
				return
			}
			settled.Reset(f.Quiet)
		case <-settled.C:
			look()
		case <-glance:
			look()
		case err := <-watcher.Errors:
			f.Logger.Debug("watch ended", "what", f.What, "error", err)
			return
		case <-poll:
			look()
			return // the directory itself may have been replaced
		}
	}
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
