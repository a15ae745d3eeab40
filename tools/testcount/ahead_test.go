// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestMain listens to interrupts, as main does: else what it starts would ignore them where this process was told to.
func TestMain(m *testing.M) {
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	m.Run()
}

const onePass = `echo '{"Action":"pass","Package":"p","Test":"A"}'; echo '{"Action":"pass","Package":"p"}'`

// runAhead runs a script ahead and others after it, in a directory that they share.
func runAhead(t *testing.T, first string, others ...string) (out string, err error) {
	t.Helper()
	t.Chdir(t.TempDir())
	args := []string{"-log", "test.log", "-ahead", "ahead.log", "--", "sh", "-c", first}
	for _, script := range others {
		args = append(args, "--", "sh", "-c", script)
	}
	var printed bytes.Buffer
	err = run(t.Context(), args, &printed)
	return printed.String(), err
}

func TestAheadRunsBesideTheSecondAndNoLonger(t *testing.T) {
	out, err := runAhead(t, `echo ready; echo $$ >pid; mv pid session; sleep 600 & sleep 600`,
		`until [ -e session ]; do sleep 0.01; done; kill -0 $(cat session) && `+onePass,
		`kill -0 $(cat session) 2>/dev/null || { `+onePass+`; }`)
	if err != nil || !strings.HasSuffix(out, "2 passed, 0 failed, 0 skipped\n") {
		t.Errorf("error %v after\n%s", err, out)
	}
	raw, err := os.ReadFile("session")
	if err != nil {
		t.Fatal(err)
	}
	leader, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(endPatience); !errors.Is(syscall.Kill(-leader, 0), syscall.ESRCH); time.Sleep(10 * time.Millisecond) { //nolint:forbidigo // init collects them when it likes
		if time.Now().After(deadline) {
			t.Fatal("its processes run on")
		}
	}
	if said, err := os.ReadFile("ahead.log"); err != nil || string(said) != "ready\n" {
		t.Errorf("ahead.log holds %q (%v)", said, err)
	}
}

func TestAheadMayFail(t *testing.T) {
	out, err := runAhead(t, `echo '{"Action":"fail","Package":"q","Test":"A"}'; exit 1`, onePass)
	if err != nil || out != "ok    p  0.0 s, 1 tests\n1 passed, 0 failed, 0 skipped\n" {
		t.Errorf("error %v after\n%s", err, out)
	}
}

func TestAheadIsEndedWhenTheSecondFails(t *testing.T) {
	began := time.Now()
	out, err := runAhead(t, `touch started; exec sleep 600`, `until [ -e started ]; do sleep 0.01; done; sleep 0.1; exit 1`, onePass)
	if !errors.Is(err, errFailed) || !strings.HasSuffix(out, "1 passed, 1 failed, 0 skipped\n") {
		t.Errorf("error %v after\n%s", err, out)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}
}

func TestAheadAloneIsNoTest(t *testing.T) {
	for name, args := range map[string][]string{
		"nothing else": {"--", "true"},
		"no such":      {"--", "/nonexistent", "--", "true"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			err := run(t.Context(), append([]string{"-log", filepath.Join(dir, "test.log"), "-ahead", filepath.Join(dir, "ahead.log")}, args...), &bytes.Buffer{})
			if err == nil || errors.Is(err, errFailed) {
				t.Errorf("error %v", err)
			}
		})
	}
}
