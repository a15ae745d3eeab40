// SPDX-License-Identifier: Apache-2.0

package deprecationlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/platform/atomicfile"
)

// interval is the time between two looks at the logs.
const interval = 10 * time.Second

// Config says which logs are read and where the counts are kept.
type Config struct {
	// Logs of the API servers of a cluster, by a name that stays.
	Logs map[string]string
	// Path of the file of the counts. Its directory must be there.
	Path string
	Log  *slog.Logger
}

// Counter counts requests for deprecated APIs. Run is for one goroutine; Seen may be asked by others.
type Counter struct {
	config Config
	now    func() time.Time

	looking sync.Mutex // held by a look
	counts  *counts    // nil: the file is read next
	saved   bool       // the file has the counts

	mu   sync.Mutex
	told *counts
}

// New returns a counter that has read nothing yet.
func New(config Config) *Counter { return &Counter{config: config, now: time.Now} }

// Seen says who asked for what, up to now. A nil counter says that nobody counts yet.
func (c *Counter) Seen(ctx context.Context) (Seen, error) {
	if c == nil {
		return Seen{}, errors.New("the audit log is not read yet")
	}
	if err := c.look(ctx); err != nil {
		return Seen{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.told.seen(c.now()), nil
}

// Run counts until the context ends.
func (c *Counter) Run(ctx context.Context) {
	ticks := time.NewTicker(interval)
	defer ticks.Stop()
	said := ""
	for {
		if err := c.look(ctx); err != nil && ctx.Err() == nil {
			if err.Error() != said {
				c.config.Log.WarnContext(ctx, "cannot count requests for deprecated APIs; they are counted later", "path", c.config.Path, "error", err)
			}
			said = err.Error()
		} else {
			said = ""
		}
		select {
		case <-ctx.Done():
			return
		case <-ticks.C:
		}
	}
}

// look counts what is new. After an error the next look begins with what the file says.
func (c *Counter) look(ctx context.Context) error {
	c.looking.Lock()
	defer c.looking.Unlock()
	if c.counts == nil {
		if err := c.load(ctx); err != nil {
			return err
		}
	}
	if err := c.read(ctx); err != nil {
		c.counts = nil
		return err
	}
	if !c.saved {
		content, err := json.Marshal(c.counts)
		if err == nil {
			err = atomicfile.Replace(c.config.Path, content, 0o600)
		}
		if err != nil {
			c.counts = nil
			return fmt.Errorf("writing the counts of deprecated APIs: %w", err)
		}
		c.saved = true
	}
	told := c.counts.clone()
	c.mu.Lock()
	c.told = told
	c.mu.Unlock()
	return nil
}

// read counts the lines that are new. The file gets the counts together with how far the logs were read; a position
// after lines that count nothing need not be.
func (c *Counter) read(ctx context.Context) error {
	now := c.now()
	if c.counts.forget(now) {
		c.saved = false
	}
	for name, path := range c.config.Logs {
		from := c.counts.Read[name]
		to, lost, err := auditlog.Tail(ctx, path, from, func(line []byte) {
			if r, ok := auditlog.Deprecated(line); ok && c.counts.add(r, now) {
				c.saved = false
			}
		})
		if err != nil {
			return err
		}
		if lost {
			c.config.Log.WarnContext(ctx, "lines of the audit log are gone that were not read: requests for deprecated APIs are not counted that they told of", "path", path)
			c.counts.Since = now.UTC()
		}
		if to.Part != from.Part {
			c.saved = false
		}
		c.counts.Read[name] = to
	}
	return nil
}

// load reads the file of the counts.
func (c *Counter) load(ctx context.Context) error {
	c.counts, c.saved = nil, false
	content, err := os.ReadFile(c.config.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the counts of deprecated APIs: %w", err)
	}
	is := &counts{}
	if err == nil {
		if wrong := json.Unmarshal(content, is); wrong != nil {
			c.config.Log.WarnContext(ctx, "the counts of deprecated APIs are damaged, and begin anew", "path", c.config.Path, "error", wrong)
			is = &counts{}
		}
	}
	is.Counts = slices.DeleteFunc(is.Counts, func(one *count) bool { return one == nil })
	if is.Since.IsZero() {
		is.Since = c.now().UTC()
	}
	if is.Read == nil {
		is.Read = map[string]auditlog.Position{}
	}
	c.counts = is
	return nil
}
