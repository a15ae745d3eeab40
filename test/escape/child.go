// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/test/escape/places"
	"muster.dev/muster/test/escape/verdict"
)

const (
	// self is this program, wherever it is.
	self = "/proc/self/exe"
	// childWord is the first argument of a process that tries one attack: childWord ATTACK RIGHTS STAGE FLAGS….
	childWord = "attack"
	// A child first takes its rights and becomes the program again, so that all of its threads have them, and runs the
	// attack then.
	stageRights, stageRun = "rights", "run"
	// Attacks have children of their own: one that crashes, and one that takes memory.
	stageCrash, stageTake = "crash", "take"
	// reportFD is where the child writes its verdict.
	reportFD = 3
	// processorSeconds is how much time of a processor an attack may take, and patience how long it may wait: on a host
	// that is busy a few milliseconds of work take a while.
	processorSeconds = 2
	patience         = 10 * time.Second
)

// tryAll tries each attack with each right, one after the other.
func tryAll(o order) ([]verdict.Verdict, error) {
	// Processes that attacks left are handed to this one, which ends them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("becoming the parent of what attacks leave: %w", err)
	}
	runtime.LockOSThread() // a child ends with the thread that started it
	defer runtime.UnlockOSThread()
	var all []verdict.Verdict
	for _, a := range o.attacks {
		for _, r := range o.rights {
			start := time.Now()
			v := try(a, r, o.places, patience)
			v.Attack, v.Rights, v.Millis = a.name, r.name, time.Since(start).Milliseconds()
			all = append(all, v)
		}
	}
	return all, nil
}

// try tries one attack in a process of its own.
func try(a attack, r right, where places.Map, patience time.Duration) verdict.Verdict {
	read, write, err := os.Pipe()
	if err != nil {
		return unclear("making pipe: %v", err)
	}
	defer func() { _ = read.Close() }()
	var complaint bytes.Buffer
	cmd := exec.Command(self, append([]string{childWord, a.name, r.name, stageRights}, where.Args()...)...) //nolint:noctx // it is killed in time
	cmd.Stderr, cmd.ExtraFiles = &complaint, []*os.File{write}
	cmd.WaitDelay = patience
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if r.nested {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	err = cmd.Start()
	_ = write.Close()
	switch {
	case err != nil && r.nested:
		return verdict.Verdict{Outcome: verdict.Held, Why: fmt.Sprintf("making a user namespace: %v", err)}
	case err != nil:
		return unclear("starting it: %v", err)
	}
	_ = read.SetReadDeadline(time.Now().Add(patience))
	line, err := bufio.NewReader(read).ReadBytes('\n')
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	waited := cmd.Wait()
	reap()
	if err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return unclear("it took longer than %v and was killed", patience)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(complaint.String()), "\n")
		return unclear("it ended without a verdict: %v: %.200s", waited, first)
	}
	v, err := verdict.ReadOne(line)
	if err != nil {
		return unclear("%v", err)
	}
	return v
}

func unclear(format string, args ...any) verdict.Verdict {
	return verdict.Verdict{Outcome: verdict.Unclear, Why: fmt.Sprintf(format, args...)}
}

// reap ends and waits for what an attack left. No other child runs at that time.
func reap() {
	for {
		for _, pid := range children() {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		if _, err := unix.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}

// children are the children of this process.
func children() []int {
	var all []int
	threads, _ := os.ReadDir("/proc/self/task") // there is no process without it
	for _, thread := range threads {
		raw, _ := os.ReadFile("/proc/self/task/" + thread.Name() + "/children") // the thread may have ended
		for word := range strings.FieldsSeq(string(raw)) {
			var pid int
			if _, err := fmt.Sscan(word, &pid); err == nil {
				all = append(all, pid)
			}
		}
	}
	return all
}

// childMain is the child's main function. Its exit status says nothing: the verdict does.
func childMain(args []string) int {
	runtime.LockOSThread() // namespaces and rights belong to a thread
	if err := child(args); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return usageExit
	}
	return allHeld
}

func child(args []string) error {
	if len(args) < 3 {
		return errors.New("too few arguments for an attack")
	}
	name, stage := args[0], args[2]
	r, err := parseRight(args[1])
	if err != nil {
		return err
	}
	switch stage {
	case stageRights:
		if err := r.take(); err != nil {
			return err
		}
		return syscall.Exec(self, append([]string{"escape", childWord, name, r.name, stageRun}, args[3:]...), os.Environ()) //nolint:gosec // G702: the program itself
	case stageCrash:
		crash()
	case stageTake:
		size, err := strconv.Atoi(args[3])
		if err != nil {
			return err
		}
		return takeMemory(size)
	}
	var where places.Map
	flags := flag.NewFlagSet("attack", flag.ContinueOnError)
	where.Register(flags)
	if err := flags.Parse(args[3:]); err != nil {
		return err
	}
	chosen, err := choose(name)
	if err != nil {
		return err
	}
	unix.CloseOnExec(reportFD)
	f := chosen[0].run(newWorld(where, name, r.name))
	return verdict.Write(os.NewFile(reportFD, "report"), verdict.Verdict{Attack: name, Rights: r.name, Outcome: f.outcome, Why: f.why, Token: f.token})
}
