// SPDX-License-Identifier: Apache-2.0

package logs_test

import (
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/logs"
)

func TestStamp(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 8*3600)
	ref := time.Date(2026, 11, 20, 12, 0, 0, 0, zone)
	for _, test := range []struct{ name, line, want string }{
		{"klog", `I1120 11:33:44.123456    1234 server.go:467] "Kubelet version"`, "2026-11-20T11:33:44.123456+08:00"},
		{"klog of last year", `W1231 23:59:59.000001       1 x.go:1] late`, "2025-12-31T23:59:59.000001+08:00"},
		{"klog a little ahead of the file", `E1120 12:00:01.000000       1 x.go:1] x`, "2026-11-20T12:00:01+08:00"},
		{"klog with an impossible day", `I1340 11:33:44.123456 x`, ""},
		{"a word that begins with a klog letter", `Error: cannot`, ""},
		{"containerd", `time="2026-11-20T03:33:44.123456789Z" level=info msg="starting containerd"`, "2026-11-20T03:33:44.123456789Z"},
		{"slog text", `time=2026-11-20T11:33:44.123+08:00 level=INFO msg=x`, "2026-11-20T11:33:44.123+08:00"},
		{"ts= logfmt", `ts=2026-11-20T03:33:44Z caller=x`, "2026-11-20T03:33:44Z"},
		{"slog JSON", `{"time":"2026-11-20T03:33:44.5Z","level":"INFO"}`, "2026-11-20T03:33:44.5Z"},
		{"etcd", `{"level":"info","ts":"2026-11-20T03:33:44.123456Z","caller":"x","msg":"time"}`, "2026-11-20T03:33:44.123456Z"},
		{"etcd with a zone without colon", `{"level":"info","ts":"2026-11-20T03:33:44.123456+0000"}`, ""},
		{"zap seconds", `{"ts":1795145624.5}`, "2026-11-20T03:33:44.5Z"},
		{"component-base milliseconds", `{"ts":1795145624500.25}`, "2026-11-20T03:33:44.50025Z"},
		{"audit", `{"kind":"Event","stageTimestamp":"2026-11-20T03:33:45.000001Z","requestReceivedTimestamp":"2026-11-20T03:33:44Z"}`, "2026-11-20T03:33:45.000001Z"},
		{"JSON without a time", `{"level":"info"}`, ""},
		{"half a JSON object", `{"ts":"2026-11-20T03:33:44Z"`, ""},
		{"container log", `2026-11-20T03:33:44.123456789Z stdout F hello`, "2026-11-20T03:33:44.123456789Z"},
		{"Go's log package", `2026/11/20 11:33:44 hello`, "2026-11-20T11:33:44+08:00"},
		{"stack trace", "\t/go/src/x.go:12 +0x1d", ""},
		{"empty", "", ""},
		{"a number", "12 machines", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, ok := logs.Stamp([]byte(test.line), ref)
			if test.want == "" {
				if ok {
					t.Fatalf("found %s in a line that has no time", got.Format(time.RFC3339Nano))
				}
				return
			}
			want, err := time.Parse(time.RFC3339Nano, test.want)
			if err != nil {
				t.Fatal(err)
			}
			if !ok || !got.Equal(want) {
				t.Fatalf("got %s (%v), want %s", got.Format(time.RFC3339Nano), ok, test.want)
			}
		})
	}
}

func FuzzStamp(f *testing.F) {
	for _, seed := range []string{
		`I1120 11:33:44.123456    1234 server.go:467] x`, `F0229 00:00:00.000000`, `time="2026-11-20T03:33:44Z" x`, `{"ts":1795145624.5}`, `{"ts":-1e308}`,
		`2026/11/20 11:33:44`, `2026-11-20T03:33:44Z`, "", "t", "{",
	} {
		f.Add(seed)
	}
	ref := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		at, ok := logs.Stamp([]byte(text), ref)
		if !ok {
			if !at.IsZero() {
				t.Fatal("a time, and yet none")
			}
			return
		}
		if strings.IndexAny(text[:1], "IWEF") == 0 && at.After(ref.Add(24*time.Hour)) {
			t.Fatalf("klog line from the future: %s", at)
		}
		// The text after the time does not matter, except in JSON.
		if text[0] != '{' {
			if again, ok := logs.Stamp([]byte(text+" x"), ref); !ok || !again.Equal(at) {
				t.Fatalf("%s became %s (%v) with a word after it", at, again, ok)
			}
		}
	})
}
