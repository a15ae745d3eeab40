// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster.dev/muster/internal/node/bootreport"
)

// A disk without space is not what is wrong with the user data.
func TestFailure(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = full.Close() }()
	_, noSpace := full.WriteString("x")
	for _, test := range []struct {
		err      error
		reason   string
		sentence string
	}{
		{fmt.Errorf("writing file: %w", noSpace), bootreport.DiskFull, "the disk is full"},
		{userDataFailure{"x"}, bootreport.UserDataFailed, "user data failed"},
		{errors.Join(userDataFailure{"x"}, errors.New("y")), bootreport.UserDataFailed, "user data failed"},
		{errors.New("unknown field"), bootreport.NodeConfigRefused, "user data cannot be used"},
	} {
		if reason, sentence := failure(test.err); reason != test.reason || !strings.HasPrefix(sentence, test.sentence) {
			t.Errorf("%v is %s: %s", test.err, reason, sentence)
		}
	}
}

// A program that ends again and again is reported with its last line, and not with the time of it: a report that says
// the same is not news.
func TestProgramThatFails(t *testing.T) {
	a := newAgent(t)
	report := reports(t, a)
	script(t, a, "kubelet", `echo 'E1122 10:00:00.123456   12345 run.go:72] "command failed" err="unknown flag: --nonsense"'; exit 1`)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.keep(ctx, &program{name: "kubelet", args: func() []string { return nil }})
	}()
	if !poll(ctx, time.Millisecond, func() bool { return report().Reason != "" }) {
		t.Fatal("nothing is reported")
	}
	cancel()
	<-done
	want := `kubelet ends again and again: exit status 1; its last lines: run.go:72] "command failed" err="unknown flag: --nonsense"`
	if got := report(); got.Reason != bootreport.ProgramFails || got.Message != want {
		t.Errorf("reported: %+v", got)
	}
}

// A machine whose host has no inotify instances left reports it, waits, and goes on when there are.
func TestInotifyExhausted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &agent{log: slog.New(slog.DiscardHandler)}
		report := reports(t, a)
		asked := 0
		went := a.inotify(t.Context(), func(most int) (int, error) {
			if asked++; asked < 3 {
				return 3, nil
			}
			if got := report(); got.Reason != bootreport.InotifyExhausted || !strings.Contains(got.Message, "3 of them are left") || !strings.Contains(got.Message, "sysctl -w fs.inotify.max_user_instances=1024") {
				t.Errorf("reported: %+v", got)
			}
			return most, nil
		})
		if got := report(); !went || asked != 3 || got.Reason != "" {
			t.Errorf("it went on: %v, after %d questions, and reports %+v", went, asked, got)
		}
	})
}
