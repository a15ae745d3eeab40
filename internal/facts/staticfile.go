// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"
)

// StaticFileConfig says where the list is.
type StaticFileConfig struct {
	Name string // of the source; "static" if empty
	File string
	// Poll is how often the file is looked at even if nothing tells that it changed; 30 s if 0.
	Poll time.Duration
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// StaticFile is the source "static" in a file: `machines: [{id, nodeName, names, addresses, group}]` in YAML. A new version counts
// at once, also if the file is replaced or a symlink on the way to it points elsewhere. A version that cannot be read changes
// nothing; a file that is gone for a minute makes every answer Unknown.
type StaticFile struct {
	static
	config StaticFileConfig
	watch  func(directory string) (*fsnotify.Watcher, error)
}

var _ Source = (*StaticFile)(nil)

// NewStaticFile reads the file once, and refuses one that cannot be read.
func NewStaticFile(c StaticFileConfig) (*StaticFile, error) {
	switch {
	case c.File == "":
		return nil, errors.New("a static inventory needs a file")
	case c.Logger == nil || c.OnChange == nil:
		return nil, errors.New("a static inventory needs a logger and somebody to tell about changes")
	}
	if c.Name == "" {
		c.Name = "static"
	}
	if c.Poll <= 0 {
		c.Poll = 30 * time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &StaticFile{config: c, watch: watchDirectory}
	s.prepare(c.Name, "the file "+c.File, c.Now, 2*c.Poll, c.OnChange, c.Logger)
	data, err := s.readFile()
	if err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	if _, err := s.load(data); err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	return s, nil
}

// Run follows the file until ctx is done.
func (s *StaticFile) Run(ctx context.Context) {
	directory := filepath.Dir(s.config.File)
	poll := time.NewTicker(s.config.Poll)
	defer poll.Stop()
	for ctx.Err() == nil {
		// The directory is watched, not the file: one that is replaced is another file.
		watcher, err := s.watch(directory)
		if err != nil {
			s.logger.Warn("directory of the list of machines not watched, it is looked at now and then", "directory", directory, "every", s.config.Poll.String(), "error", err)
			s.look()
			select {
			case <-ctx.Done():
			case <-poll.C:
			}
			continue
		}
		s.look() // what changed before it was watched
		s.follow(ctx, watcher, poll.C)
		_ = watcher.Close() // it was only read
	}
}

// quiet is how long nothing may have happened to a file before it is taken for whole.
const quiet = 100 * time.Millisecond

// follow looks at the file after events, until the watch may be of no use any more.
func (s *StaticFile) follow(ctx context.Context, watcher *fsnotify.Watcher, poll <-chan time.Time) {
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
			s.look()
		case err := <-watcher.Errors:
			s.logger.Debug("watch of the list of machines ended", "error", err)
			return
		case <-poll:
			s.look()
			return // the directory itself may have been replaced
		}
	}
}

// look reads the file if it can.
func (s *StaticFile) look() {
	data, err := s.readFile()
	s.health.report(err)
	if err == nil {
		s.update(data)
	}
}

func (s *StaticFile) readFile() ([]byte, error) {
	file, err := os.Open(s.config.File)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // it was only read
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", s.config.File)
	}
	return io.ReadAll(io.LimitReader(file, maxList+1))
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
