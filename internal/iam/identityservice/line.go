// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
)

// line is what one line of the log tells of one request: the caller, the action and the result. There is no parameter in it but names:
// others may be secrets.
type line struct {
	api, action, requestID       string
	principal, accessKey, target string
	code, message                string
	cause                        any
	warnings                     []string // of a policy that was kept
}

type lineKey struct{}

func lineOf(ctx context.Context) *line {
	r, _ := ctx.Value(lineKey{}).(*line)
	if r == nil {
		return &line{}
	}
	return r
}

// logged writes the line of every request.
func (s *Service) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := s.config.Now()
		entry := &line{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), lineKey{}, entry)))
		level, outcome := slog.LevelInfo, "ok"
		if entry.code != "" {
			outcome = entry.code
		}
		attributes := []slog.Attr{
			slog.String("api", entry.api), slog.String("action", entry.action), slog.String("outcome", outcome),
			slog.String("principal", entry.principal), slog.String("access_key_id", entry.accessKey), slog.String("resource", entry.target),
			slog.String("source", r.RemoteAddr), slog.String("request_id", entry.requestID), slog.Duration("took", s.config.Now().Sub(began)),
		}
		if vpc := vpcOf(r.Context()); vpc != "" {
			attributes = append(attributes, slog.String("vpc", vpc))
		}
		if entry.message != "" {
			attributes = append(attributes, slog.String("message", entry.message))
		}
		if entry.cause != nil {
			attributes = append(attributes, slog.Any("cause", entry.cause))
		}
		if len(entry.warnings) > 0 {
			level = slog.LevelWarn
			attributes = append(attributes, slog.Any("warnings", entry.warnings))
		}
		if _, other := s.services[entry.api]; other {
			s.config.Log.LogAttrs(r.Context(), level, "aws request", attributes...)
			return
		}
		s.config.Log.LogAttrs(r.Context(), level, "identity request", attributes...)
	})
}

// collector takes what package awsquery logs of a request into the request's record, so that each has one entry.
type collector struct{}

// Enabled tells that everything is taken.
func (collector) Enabled(context.Context, slog.Level) bool { return true }

// Handle takes a line apart.
func (collector) Handle(ctx context.Context, r slog.Record) error {
	entry := lineOf(ctx)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "api":
			entry.api = a.Value.String()
		case "action":
			if entry.action == "" { // admit has said it already
				entry.action = strings.Trim(a.Value.String(), `"`)
			}
		case "request_id":
			entry.requestID = a.Value.String()
		case "code":
			entry.code = a.Value.String()
		case "message":
			entry.message = a.Value.String()
		case "cause", "error":
			entry.cause = a.Value.Any()
		}
		return true
	})
	return nil
}

// WithAttrs is the same: awsquery sets none.
func (c collector) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup is the same: awsquery makes none.
func (c collector) WithGroup(string) slog.Handler { return c }
