// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// quota bounds the lines about tokens that nobody made: anybody who reaches the API server can send those by the thousand, and the
// disk is the cluster's. Decisions about somebody are all written.
type quota struct {
	mu      sync.Mutex
	from    time.Time
	lines   int
	leftOut int
}

// linesPerSecond is how many of those lines are written.
const linesPerSecond = 100

// take tells whether a line may be written, and how many were left out before.
func (q *quota) take(now time.Time) (ok bool, leftOut int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.from) >= time.Second || now.Before(q.from) {
		q.from, q.lines = now, 0
		leftOut, q.leftOut = q.leftOut, 0
	}
	if q.lines >= linesPerSecond {
		q.leftOut++
		return false, 0
	}
	q.lines++
	return true, leftOut
}

// record writes one line about a decision and counts it. What a token holds is never in it.
func (a *Authenticator) record(ctx context.Context, d Decision, client string, took time.Duration) {
	a.config.Metrics.latency.WithLabelValues(string(d.Result)).Observe(took.Seconds())
	a.config.Metrics.decisions.WithLabelValues(string(d.Result), string(d.Source)).Inc()
	attributes := make([]slog.Attr, 0, 16)
	attributes = append(attributes, slog.String("result", string(d.Result)), slog.Int("status", d.Status), slog.String("client", client),
		slog.Duration("took", took), slog.Bool("cached", d.Cached))
	if d.Identity == nil {
		ok, leftOut := a.quota.take(a.config.Now())
		if !ok {
			a.config.Metrics.linesLeftOut.Inc()
			return
		}
		if leftOut > 0 {
			attributes = append(attributes, slog.Int("left_out_before", leftOut))
		}
	}
	if d.Source != "" {
		attributes = append(attributes, slog.String("source", string(d.Source)), slog.String("entry", d.Entry))
	}
	scrubbed := d.Identity != nil && slices.Contains(a.config.Scrubbed, d.Identity.Account)
	switch {
	case scrubbed:
		attributes = append(attributes, slog.Bool("scrubbed", true))
	case d.Identity != nil:
		attributes = append(attributes, slog.String("arn", d.Identity.ARN.String()), slog.String("canonical_arn", d.Identity.CanonicalARN.String()),
			slog.String("account", d.Identity.Account), slog.String("principal_id", d.Identity.UserID), slog.String("access_key_id", d.Identity.AccessKeyID))
		if d.Identity.Instance != nil {
			attributes = append(attributes, slog.String("instance", d.Identity.Instance.ID))
		}
	}
	if d.Result == Success {
		if !scrubbed {
			attributes = append(attributes, slog.String("username", d.User.Name), slog.String("uid", d.User.UID), slog.Any("groups", d.User.Groups))
		}
		a.config.Logger.LogAttrs(ctx, slog.LevelInfo, "access granted", attributes...)
		return
	}
	attributes = append(attributes, slog.String("rule", d.Rule))
	if !scrubbed {
		attributes = append(attributes, slog.String("saw", d.Saw), slog.String("fix", d.Fix))
	}
	a.config.Logger.LogAttrs(ctx, slog.LevelWarn, "access denied", attributes...)
}
