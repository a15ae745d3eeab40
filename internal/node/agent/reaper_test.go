// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// newAgent is an agent with its reaper. A reaper takes the end of every child, so nothing in this package may use
// os/exec.
func newAgent(t *testing.T) *agent {
	t.Helper()
	a := &agent{
		config: Config{BinDir: t.TempDir(), LogDir: t.TempDir(), DataDir: t.TempDir(), DropInDir: t.TempDir(), ScriptPatience: scriptPatience, ScriptSlow: scriptSlow},
		log:    slog.New(slog.DiscardHandler),
		reaper: newReaper(),
		said:   map[step]string{},
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.reaper.run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	return a
}

func script(t *testing.T, a *agent, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(a.config.BinDir, name), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestReaperTellsHowEachEnded(t *testing.T) {
	a := newAgent(t)
	output, err := openLog(filepath.Join(a.config.LogDir, "x.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer output.Close()
	ends := map[string]<-chan unix.WaitStatus{}
	for command, want := range map[string]string{"exit 0": "exit status 0", "exit 3": "exit status 3", "kill -9 $$": "signal SIGKILL"} {
		_, ended, err := a.reaper.start("/bin/sh", []string{"-c", command}, environment(), output)
		if err != nil {
			t.Fatal(err)
		}
		ends[want] = ended
	}
	for want, ended := range ends {
		if got := describe(<-ended); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if _, _, err := a.reaper.start("/does/not/exist", nil, nil, output); err == nil {
		t.Error("a program that does not exist was started")
	}
	if len(a.reaper.waiting) != 0 {
		t.Errorf("still waiting for %v", a.reaper.waiting)
	}
}

// A program that ends is started again. A program that is to be restarted ends and starts. The end of the context ends
// both.
func TestKeep(t *testing.T) {
	a := newAgent(t)
	script(t, a, "flaky", "echo started\nif [ -e "+a.config.DataDir+"/stay ]; then exec sleep 60; fi\ntouch "+a.config.DataDir+"/stay\nexit 1\n")
	p := &program{name: "flaky", args: func() []string { return nil }, restart: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.keep(ctx, p)
	}()
	starts := func(want int) bool {
		return poll(t.Context(), 5*time.Millisecond, func() bool {
			log, _ := os.ReadFile(filepath.Join(a.config.LogDir, "flaky.log"))
			return strings.Count(string(log), "started") >= want
		})
	}
	if !starts(2) {
		t.Fatal("it was not started again after it ended")
	}
	p.restart <- struct{}{}
	if !starts(3) {
		t.Fatal("it was not restarted")
	}
	cancel()
	<-done
	a.reaper.mutex.Lock()
	defer a.reaper.mutex.Unlock()
	for pid := range a.reaper.waiting {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
}

func TestRun(t *testing.T) {
	a := newAgent(t)
	script(t, a, "good", "echo done\n")
	script(t, a, "bad", "exit 7\n")
	if err := a.run(t.Context(), "good"); err != nil {
		t.Error(err)
	}
	if err := a.run(t.Context(), "bad"); err == nil || !strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v, want exit status 7", err)
	}
}

// Each archive is imported once from the same file, those that pods of every cluster need before the kubelet starts; a failed one is tried
// again, and others and one that comes later are imported, too.
func TestImportImages(t *testing.T) {
	a := newAgent(t)
	images := filepath.Join(a.config.BinDir, "images")
	if err := os.Mkdir(images, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, size := range map[string]int{"pause": 1, "coredns": 100, "workload": 10, "addon": 5} {
		if err := os.WriteFile(filepath.Join(images, name+".tar"), make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script(t, a, "ctr", `for last; do :; done
echo "$(basename $last)" >> `+a.config.DataDir+`/calls
case $last in */workload.tar) [ -e `+a.config.DataDir+`/failed ] || { touch `+a.config.DataDir+`/failed; exit 1; };; esac
`)
	shipped := a.newShippedImages()
	shipped.first(t.Context())
	calls := func() string {
		raw, _ := os.ReadFile(filepath.Join(a.config.DataDir, "calls"))
		return strings.Join(strings.Fields(string(raw)), " ")
	}
	if got, want := calls(), "pause.tar workload.tar coredns.tar"; got != want {
		t.Errorf("imported first: %s, want %s", got, want)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	imported := func(name string) {
		t.Helper()
		if !poll(ctx, 5*time.Millisecond, func() bool { return exists(filepath.Join(a.config.DataDir, "imported-"+name)) }) {
			t.Fatalf("%s was not imported", name)
		}
	}
	followed := make(chan struct{})
	go func() {
		defer close(followed)
		shipped.follow(ctx)
	}()
	imported("workload")
	made := filepath.Join(a.config.DataDir, "metrics-server.tar") // elsewhere, and renamed into place, as the build does
	if err := os.WriteFile(made, make([]byte, 50), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(made, filepath.Join(images, "metrics-server.tar")); err != nil {
		t.Fatal(err)
	}
	imported("metrics-server")
	cancel()
	<-followed
	const want = "pause.tar workload.tar coredns.tar addon.tar workload.tar metrics-server.tar"
	if got := calls(); got != want {
		t.Errorf("imported %s, want %s", got, want)
	}
	if !shipped.sync(t.Context()) || calls() != want {
		t.Errorf("imported again: %s", calls())
	}
}

func TestRotate(t *testing.T) {
	path := filepath.Join(t.TempDir(), "kubelet.log")
	writer, err := openLog(path)
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	write := func(text string) {
		t.Helper()
		if _, err := writer.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	write("12345678")
	if err := rotate(path, 8); err != nil {
		t.Fatal(err)
	}
	if exists(path + ".1") {
		t.Error("rotated at the limit, not above it")
	}
	write("9")
	if err := rotate(path, 8); err != nil {
		t.Fatal(err)
	}
	write("after")
	for path, want := range map[string]string{path: "after", path + ".1": "123456789"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v; want %q", filepath.Base(path), got, err, want)
		}
	}
}

func TestRunRefusesToBeAnybodyElse(t *testing.T) {
	if err := Run(t.Context(), Config{}); err == nil || !strings.Contains(err.Error(), "muster up") {
		t.Errorf("got %v, want what to do instead", err)
	}
}
