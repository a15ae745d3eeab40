// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Files that a run leaves in its directory of reports.
const (
	reportFile = "report.json"
	junitFile  = "junit.xml"
	logFile    = "e2e.log"
)

// runSuite runs the chosen specs. An error means that ginkgo did not exit with success, which specs that failed are a
// reason for, too.
func runSuite(ctx context.Context, o options, c *cluster, programs, reports string) (err error) {
	if err := os.RemoveAll(reports); err != nil {
		return err
	}
	if err := os.MkdirAll(reports, 0o750); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(reports, logFile))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	cmd := interruptible(ctx, filepath.Join(programs, "ginkgo"), arguments(o, c, programs, reports)...)
	cmd.Env = append(os.Environ(), "HOME="+c.dir, "KUBECONFIG="+c.kubeconfig)
	cmd.Dir, cmd.Stdout, cmd.Stderr = reports, log, log
	fmt.Fprintf(os.Stderr, "running specs; %s tells how far they are\n", log.Name())
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("running the suite, see %s: %w", log.Name(), err)
	}
	return nil
}

// arguments are ginkgo's, and after the -- the suite's own.
func arguments(o options, c *cluster, programs, reports string) []string {
	args := []string{
		"run", "--procs=" + strconv.Itoa(o.processes), "--no-color", "--silence-skips", "--timeout=" + o.timeout.String(),
		"--output-dir=" + reports, "--json-report=" + reportFile, "--junit-report=" + junitFile,
	}
	for _, choice := range []struct{ flag, value string }{{"label-filter", o.labels}, {"focus", o.focus}, {"skip", o.skip}} {
		if choice.value != "" {
			args = append(args, "--"+choice.flag+"="+choice.value)
		}
	}
	return append(args, filepath.Join(programs, "e2e.test"), "--",
		"--kubeconfig="+c.kubeconfig,
		"--provider=skeleton",
		"--num-nodes="+strconv.Itoa(nodes), // specs that need two would skip themselves otherwise
		"--kubectl-path="+c.kubectl,
	)
}

// interruptible prepares a program that gets SIGINT once when ctx ends, and a minute to write what it knows and to end.
// A Ctrl-C of the terminal does not reach it, as it is in a process group of its own: a second SIGINT would end ginkgo
// without a report.
func interruptible(ctx context.Context, program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	return cmd
}
