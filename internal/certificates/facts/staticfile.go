// SPDX-License-Identifier: Apache-2.0

package facts

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"muster.dev/muster/internal/platform/watchfile"
)

// StaticFileConfig says where the list is.
type StaticFileConfig struct {
	Name string // of the source; "static" if empty
	File string
	// Poll is how often the file is looked at even if nothing tells that it changed; 1 s if 0. It costs a system call.
	Poll time.Duration
	// OnChange is called after each change. It must be quick.
	OnChange func(Change)
	Now      func() time.Time // time.Now if nil
	Logger   *slog.Logger
}

// StaticFile is the source "static" in a file: `machines: [{id, nodeName, names, addresses, group}]` in YAML. A new
// version counts at once, also if the file is replaced or a symlink on the way to it points elsewhere. A version that
// cannot be read changes nothing; a file that is gone, or was not looked at, for 5 seconds makes every answer Unknown.
type StaticFile struct {
	static
	file watchfile.File
	now  func() time.Time
	was  watchfile.Version // that was read last
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
		c.Poll = time.Second
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &StaticFile{now: c.Now, file: watchfile.File{Path: c.File, What: "list of machines", Poll: rewatch, Glance: c.Poll, MaxSize: maxList, Logger: c.Logger}}
	s.prepare(c.Name, "the file "+c.File, c.Now, staleAfter, c.OnChange, c.Logger)
	s.health.hear(c.Now())
	data, err := s.file.Read()
	if err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	if _, err := s.load(data); err != nil {
		return nil, fmt.Errorf("reading the inventory: %w", err)
	}
	return s, nil
}

// Run follows the file until ctx is done.
func (s *StaticFile) Run(ctx context.Context) { s.file.Run(ctx, s.look) }

// rewatch is how often the directory is watched anew, which may have been replaced.
const rewatch = 30 * time.Second

// look reads the file if it may have changed since the last look.
func (s *StaticFile) look() {
	began := s.now()
	version, err := s.file.Version()
	if err == nil && !version.Same(s.was) {
		err = s.read(version)
	}
	if err == nil {
		s.health.hear(began)
	}
	s.health.report(err)
}

// read takes over what the file says, of this version or of a later one.
func (s *StaticFile) read(version watchfile.Version) error {
	s.was = watchfile.Version{}
	data, err := s.file.Read()
	if err != nil {
		return err
	}
	s.was = version
	s.update(data)
	return nil
}
