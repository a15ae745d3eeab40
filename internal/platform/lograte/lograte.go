// SPDX-License-Identifier: Apache-2.0

// Package lograte bounds how many lines of a log a stranger causes: those of one machine would push those of all others
// out of a log whose size is bounded. The next line that is written tells how many lines were left out.
package lograte

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// burst is how many lines come at once: more than an honest machine has for the pods that it may run.
	burst = 200
	// interval is how long it takes until one line more may come.
	interval = 5 * time.Second
)

// leftOut is the key by which a line tells how many lines before it were left out.
const leftOut = "left_out"

// Logger returns a logger that writes to log as much as one stranger may cause. Loggers made of it share the bound.
func Logger(log *slog.Logger) *slog.Logger {
	return slog.New(handler{log.Handler(), &bound{limit: rate.NewLimiter(rate.Every(interval), burst)}})
}

// bound is what the loggers of one stranger share.
type bound struct {
	limit *rate.Limiter

	mutex sync.Mutex
	left  int // lines since the last one that was written
}

// take reports whether a line of a moment may be written, and how many before it were not.
func (b *bound) take(now time.Time) (left int, ok bool) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if !b.limit.AllowN(now, 1) {
		b.left++
		return 0, false
	}
	left, b.left = b.left, 0
	return left, true
}

type handler struct {
	slog.Handler
	bound *bound
}

// Handle implements [slog.Handler].
func (h handler) Handle(ctx context.Context, record slog.Record) error {
	left, ok := h.bound.take(record.Time)
	if !ok {
		return nil
	}
	if left > 0 {
		record = record.Clone()
		record.AddAttrs(slog.Int(leftOut, left))
	}
	return h.Handler.Handle(ctx, record)
}

// WithAttrs implements [slog.Handler].
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return handler{h.Handler.WithAttrs(attrs), h.bound}
}

// WithGroup implements [slog.Handler].
func (h handler) WithGroup(name string) slog.Handler {
	return handler{h.Handler.WithGroup(name), h.bound}
}
