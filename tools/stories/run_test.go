// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// scripted is a runner whose stories are lines of a shell.
func scripted(t *testing.T, slots int) (*runner, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &runner{out: &out, slots: slots, times: times{}, command: func(ctx context.Context, s story) *exec.Cmd {
		return exec.CommandContext(ctx, "sh", "-c", s.file)
	}}, &out
}

func shell(name, script string) chosen { return chosen{story: story{name: name, file: script}} }

func TestRunKeepsLinesWhole(t *testing.T) {
	t.Parallel()
	r, out := scripted(t, 4)
	outcomes := r.run(t.Context(), []chosen{shell("A", "printf one; sleep 0.1; echo two"), shell("B", "printf three; sleep 0.1; echo four; exit 1")})
	if !strings.Contains(out.String(), "onetwo\n") || !strings.Contains(out.String(), "threefour\n") {
		t.Errorf("printed %q", out)
	}
	if outcomes[0].failed || !outcomes[1].failed {
		t.Errorf("outcomes %+v", outcomes)
	}
}

// Four stories wait for each other, which only ends if all of them run at the same time. A story that runs alone sees
// that nothing else runs.
func TestRunSeveralAndOneAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	meet := "cd " + dir + "; touch $$.here; for n in $(seq 600); do [ $(ls | grep -c here) -ge 4 ] && exit 0; sleep 0.05; done; exit 1"
	alone := shell("alone", "cd "+dir+"; rm -f *.here; touch busy; sleep 0.2; rm busy")
	alone.alone = true
	beside := "! test -e " + filepath.Join(dir, "busy")
	r, _ := scripted(t, 4)
	for _, o := range r.run(t.Context(), []chosen{shell("A", meet), shell("B", meet), shell("C", meet), shell("D", meet), alone, shell("E", beside), shell("F", beside)}) {
		if o.failed || o.notRun != "" {
			t.Errorf("%s: %+v", o.name, o)
		}
	}
}

func TestRunWithinTheClock(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, 1)
	r.until, r.times = time.Now().Add(time.Minute), times{"long": 120, "short": 1, "needs": 1, "again": 1}
	needs := shell("needs", "true")
	needs.needs = "addons"
	outcomes := r.run(t.Context(), []chosen{shell("long", "true"), needs, shell("short", "true")})
	for n, want := range []string{"takes about 120 s", "takes about 481 s", ""} {
		if got := outcomes[n].notRun; want == "" && got != "" || !strings.HasPrefix(got, want) {
			t.Errorf("%s: %q, want %q", outcomes[n].name, got, want)
		}
	}
}

func TestRunBuildsOnce(t *testing.T) {
	t.Parallel()
	r, _ := scripted(t, 1)
	var made []string
	r.until, r.build = time.Now().Add(time.Hour), func(_ context.Context, target string) error {
		made = append(made, target)
		return nil
	}
	first, second := shell("first", "true"), shell("second", "true")
	first.needs, second.needs = "addons", "image"
	outcomes := r.run(t.Context(), []chosen{first, second})
	if outcomes[0].notRun != "" || !strings.HasPrefix(outcomes[1].notRun, "another story of this run needed") || strings.Join(made, " ") != "addons" {
		t.Errorf("%+v after %v", outcomes, made)
	}
	r.build = func(context.Context, string) error { return errors.New("no compiler") }
	r.built = false
	if o := r.run(t.Context(), []chosen{first})[0]; !o.failed {
		t.Error("a story whose build failed has not failed")
	}
}

// A story that takes twice as long as it is known to makes later ones be expected to.
func TestRunLearnsHowSlowTheMachineIs(t *testing.T) {
	t.Parallel()
	r := &runner{expected: time.Minute, spent: 2 * time.Minute}
	if got := r.slowed(10 * time.Second); got != 20*time.Second {
		t.Errorf("10 s become %s", got)
	}
	r.spent = 30 * time.Second
	if got := r.slowed(10 * time.Second); got != 10*time.Second {
		t.Errorf("on a fast machine 10 s become %s", got)
	}
}

func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, _ := scripted(t, 1)
	if o := r.run(ctx, []chosen{shell("A", "true")})[0]; o.notRun != "interrupted" {
		t.Errorf("outcome %+v", o)
	}
}

// Programs beside the stories stand still while a story is alone, and go on afterwards.
func TestAloneStopsWhatIsBeside(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "count")
	beside := exec.CommandContext(t.Context(), "sh", "-c", "n=0; while [ $n -lt 2000 ]; do n=$((n+1)); echo >>"+file+"; sleep 0.02; done")
	beside.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := beside.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = beside.Wait() }()
	defer func() { _ = syscall.Kill(-beside.Process.Pid, syscall.SIGKILL) }()
	r, _ := scripted(t, 1)
	r.beside = beside.Process.Pid
	lines := func() int {
		raw, _ := os.ReadFile(file)
		return len(raw)
	}
	for lines() == 0 {
		<-time.After(time.Millisecond)
	}
	alone := shell("alone", "sleep 0.1; wc -c <"+file+" >"+file+".1; sleep 0.5; wc -c <"+file+" >"+file+".2; cmp "+file+".1 "+file+".2")
	alone.alone = true
	if o := r.run(t.Context(), []chosen{alone})[0]; o.failed {
		t.Error("it was not alone")
	}
	for now := lines(); lines() <= now; {
		<-time.After(time.Millisecond)
	}
}

func TestRounds(t *testing.T) {
	t.Parallel()
	r, out := scripted(t, 1)
	count := filepath.Join(t.TempDir(), "count")
	if failed := r.rounds(t.Context(), story{name: "flaky", file: "echo >>" + count + "; test $(wc -l <" + count + ") -ne 2"}, 5, out); failed != 1 {
		t.Errorf("%d of 5 failed", failed)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	summary(&out, []outcome{
		{chosen: chosen{story{name: "TestA"}, "internal/x.go"}, took: 12 * time.Second},
		{chosen: chosen{story: story{name: "TestB"}}, took: time.Second, failed: true},
		{chosen: chosen{story: story{name: "TestC"}}, notRun: "takes too long"},
	}, 13*time.Second)
	const want = `2 stories ran in 13s, 1 did not
  ran      TestA                                          12 s  internal/x.go
  ran      TestB                                           1 s    FAILED
  not run  TestC                                        takes too long
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", &out, want)
	}
}
