// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/refusalcause"
)

// quota bounds the lines about refused tokens: anybody with access to the API server can send tokens by the thousand,
// good ones of unrelated AWS accounts too, and the disk is the cluster's. Those about a principal that was let in
// before have a share of their own, so that no flood hides that a key was revoked. Every admission is written.
type quota struct {
	mu      sync.Mutex
	from    time.Time
	lines   map[about]int
	leftOut int
}

// about is what lines are about: somebody of a kind, or all of that kind.
type about struct{ kind, who string }

// Kinds of lines about refused tokens.
const (
	aboutNobody  = "nobody"  // of an unknown maker
	aboutKey     = "key"     // of a principal that was let in
	aboutAccount = "account" // of another principal
)

// How many lines are written each second.
const (
	linesPerKind = 100
	linesPerWho  = 10 // of one key or account
)

// take reports whether a line may be written, and how many were left out before. who is "" if it is not known.
func (q *quota) take(now time.Time, kind, who string) (ok bool, leftOut int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if now.Sub(q.from) >= time.Second || now.Before(q.from) {
		q.from, q.lines = now, map[about]int{}
		leftOut, q.leftOut = q.leftOut, 0
	}
	all, one := about{kind, ""}, about{kind, who}
	if q.lines[all] >= linesPerKind || who != "" && q.lines[one] >= linesPerWho {
		q.leftOut++
		return false, 0
	}
	q.lines[all]++
	if who != "" {
		q.lines[one]++
	}
	return true, leftOut
}

// lineAbout tells which lines a refusal is one of.
func (a *Authenticator) lineAbout(d Decision) (kind, who string) {
	key := d.Claim
	if d.Identity != nil {
		key = d.Identity.AccessKeyID
	}
	switch {
	case key != "" && a.config.Verifier.Admitted(key):
		return aboutKey, key
	case d.Identity != nil:
		return aboutAccount, d.Identity.Account
	}
	return aboutNobody, ""
}

// record writes one line about a decision and counts it. The content of a token is never in it.
func (a *Authenticator) record(ctx context.Context, d Decision, client string, took time.Duration) {
	a.config.Metrics.latency.WithLabelValues(string(d.Result)).Observe(took.Seconds())
	a.config.Metrics.decisions.WithLabelValues(string(d.Result), string(d.Source)).Inc()
	attributes := make([]slog.Attr, 0, 16)
	attributes = append(attributes, slog.String("result", string(d.Result)), slog.Int("status", d.Status), slog.String("client", client),
		slog.Duration("took", took), slog.Bool("cached", d.Cached))
	if d.Result != Success {
		kind, who := a.lineAbout(d)
		ok, leftOut := a.quota.take(a.config.Now(), kind, who)
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
		if d.Trusted {
			a.config.Metrics.trusted.Inc()
			attributes = append(attributes, slog.String("rule", string(identity.RuleTrustedName)))
		}
		if !scrubbed {
			attributes = append(attributes, slog.String("username", d.User.Name), slog.String("uid", d.User.UID), slog.Any("groups", d.User.Groups))
		}
		a.config.Logger.LogAttrs(ctx, slog.LevelInfo, "access granted", attributes...)
		return
	}
	attributes = append(attributes, slog.String("rule", d.Rule))
	if id := refusalcause.Of(d.Rule); id != "" {
		attributes = append(attributes, slog.String("cause", id))
	}
	if d.Claim != "" {
		attributes = append(attributes, slog.String("claimed_access_key_id", d.Claim))
	}
	if !scrubbed {
		attributes = append(attributes, slog.String("saw", d.Saw), slog.String("fix", d.Fix))
	}
	a.config.Logger.LogAttrs(ctx, slog.LevelWarn, "access denied", attributes...)
}
