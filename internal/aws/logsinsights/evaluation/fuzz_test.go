// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"errors"
	"testing"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
)

// FuzzRun runs whatever can be read. A query has an answer of at most MaxRows rows, or meets a limit.
func FuzzRun(f *testing.F) {
	for _, query := range []string{
		authorizationMode, controllers, signingRequest, "fields jsonParse(@message) as j | unnest j.user.groups into g | stats count(*) by g",
		"pattern @message", "stats pct(f, 50) - median(f) * stddev(f) as x by bin(1mo), f | sort x desc, f | dedup f | limit 1",
		"fields replace(concat(@message, f), f, @message), substr(f, -1, f), split(f, ''), f % 0, datefloor(f, 1w), fromMillis(f ^ f)",
	} {
		f.Add(query, `{"user":{"groups":["a","b"]}}`, "1")
	}
	f.Fuzz(func(t *testing.T, text, message, field string) {
		query, err := logsinsights.Parse(text)
		if err != nil {
			return
		}
		events := numbered(3)
		events[1].Message, events[1].Fields["f"] = message, field
		enough, calls := errors.New("enough"), 0
		result, err := evaluation.Run(query, sequence(events), evaluation.Options{Now: now, Limits: evaluation.Limits{Bytes: 1 << 20, Groups: 100, Values: 100}, Check: func() error {
			if calls++; calls > 10 {
				return enough
			}
			return nil
		}})
		var limit *evaluation.LimitError
		switch {
		case errors.Is(err, enough):
		case errors.As(err, &limit):
		case err != nil:
			t.Fatalf("%q: %v", text, err)
		case len(result.Rows) > logsinsights.MaxRows:
			t.Fatalf("%q: %d rows", text, len(result.Rows))
		}
	})
}

// BenchmarkRun asks the seed's question about the certificate signing request.
func BenchmarkRun(b *testing.B) {
	events := recorded(b)
	query, err := logsinsights.Parse(signingRequest)
	if err != nil {
		b.Fatal(err)
	}
	bytes := 0
	for _, e := range events {
		bytes += len(e.Message)
	}
	b.SetBytes(int64(bytes))
	for b.Loop() {
		if _, err := evaluation.Run(query, sequence(events), evaluation.Options{Now: now}); err != nil {
			b.Fatal(err)
		}
	}
}
