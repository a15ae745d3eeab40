// SPDX-License-Identifier: Apache-2.0

package awsfront

import (
	"context"
	"log/slog"
	"net/http"
)

// Record is what one line of the log tells of one request: the caller, the action and the result. Names are its only
// parameters, since others may be secrets.
type Record struct {
	Service, Action, RequestID     string
	Principal, AccessKey, Resource string
	Code, Message                  string // of a refusal
	Cause                          any
	Warnings                       []string // of a policy that was kept
}

type recordKey struct{}

// RecordOf is the record of a request, by its context. Outside of a front's requests it is one that nobody writes.
func RecordOf(ctx context.Context) *Record {
	r, _ := ctx.Value(recordKey{}).(*Record)
	if r == nil {
		return &Record{}
	}
	return r
}

// logged writes the record of every request.
func (f *Front) logged(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		began := f.config.Now()
		record := &Record{}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), recordKey{}, record)))
		level, outcome := slog.LevelInfo, "ok"
		if record.Code != "" {
			outcome = record.Code
		}
		attributes := []slog.Attr{
			slog.String("api", record.Service), slog.String("action", record.Action), slog.String("outcome", outcome),
			slog.String("principal", record.Principal), slog.String("access_key_id", record.AccessKey), slog.String("resource", record.Resource),
			slog.String("source", r.RemoteAddr), slog.String("request_id", record.RequestID), slog.Duration("took", f.config.Now().Sub(began)),
		}
		if vpc := vpcOf(r.Context()); vpc != "" {
			attributes = append(attributes, slog.String("vpc", vpc))
		}
		if record.Message != "" {
			attributes = append(attributes, slog.String("message", record.Message))
		}
		if record.Cause != nil {
			attributes = append(attributes, slog.Any("cause", record.Cause))
		}
		if len(record.Warnings) > 0 {
			level = slog.LevelWarn
			attributes = append(attributes, slog.Any("warnings", record.Warnings))
		}
		if h := f.handlers[record.Service]; h != nil && h != f.identity {
			f.config.Log.LogAttrs(r.Context(), level, "aws request", attributes...)
			return
		}
		f.config.Log.LogAttrs(r.Context(), level, "identity request", attributes...)
	})
}
