// SPDX-License-Identifier: Apache-2.0

package lograte

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// A flood is cut, and the next line counts what was left out. Another stranger is heard all the same.
func TestLogger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var written strings.Builder
		log := slog.New(slog.NewTextHandler(&written, nil))
		flood, other := Logger(log).With("machine", "one"), Logger(log).With("machine", "two")
		for range burst {
			flood.Info("refused")
		}
		for range 1000 {
			flood.WithGroup("g").Warn("refused")
		}
		flood.Debug("not even counted")
		if n := strings.Count(written.String(), "\n"); n != burst || strings.Contains(written.String(), leftOut) {
			t.Errorf("%d lines", n)
		}
		written.Reset()
		other.Info("heard")
		if !strings.Contains(written.String(), "msg=heard machine=two\n") {
			t.Errorf("another one: %q", written.String())
		}
		time.Sleep(interval) //nolint:forbidigo // in a bubble
		written.Reset()
		flood.Info("refused again")
		flood.Info("refused again")
		time.Sleep(burst * interval) //nolint:forbidigo // in a bubble
		flood.Info("refused at last")
		flood.Info("refused at last")
		want := []string{
			`level=INFO msg="refused again" machine=one left_out=1000`,
			`level=INFO msg="refused at last" machine=one left_out=1`,
			`level=INFO msg="refused at last" machine=one`,
		}
		got := strings.Split(strings.TrimSpace(written.String()), "\n")
		if len(got) != len(want) {
			t.Fatalf("%q", got)
		}
		for n := range want {
			if _, line, _ := strings.Cut(got[n], " "); line != want[n] {
				t.Errorf("%q, want %q", line, want[n])
			}
		}
	})
}
