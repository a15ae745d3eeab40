// SPDX-License-Identifier: Apache-2.0

package identityservice

import (
	"context"
	"log/slog"
	"strings"

	"muster.dev/muster/internal/aws/awsfront"
)

// collector takes what package awsquery logs of a request into the request's record, so that each has one entry.
type collector struct{}

// Enabled tells that everything is taken.
func (collector) Enabled(context.Context, slog.Level) bool { return true }

// Handle takes a line apart.
func (collector) Handle(ctx context.Context, r slog.Record) error {
	record := awsfront.RecordOf(ctx)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Key {
		case "api":
			record.Service = a.Value.String()
		case "action":
			if record.Action == "" { // admit has said it already
				record.Action = strings.Trim(a.Value.String(), `"`)
			}
		case "request_id":
			record.RequestID = a.Value.String()
		case "code":
			record.Code = a.Value.String()
		case "message":
			record.Message = a.Value.String()
		case "cause", "error":
			record.Cause = a.Value.Any()
		}
		return true
	})
	return nil
}

// WithAttrs is the same: awsquery sets none.
func (c collector) WithAttrs([]slog.Attr) slog.Handler { return c }

// WithGroup is the same: awsquery makes none.
func (c collector) WithGroup(string) slog.Handler { return c }
