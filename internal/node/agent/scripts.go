// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/bootreport"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/atomicfile"
)

const (
	// scriptPatience is how long one script may hold up the machine.
	scriptPatience = 10 * time.Minute
	// scriptSlow is how long a script runs before the machine reports it, and how often the report is written anew.
	scriptSlow = 20 * time.Second
)

// runScripts runs the scripts of the user data, in order, the first time that this instance boots, and returns what
// failed, a line for each script. As cloud-init does (cloudinit/helpers.py, FileSemaphores), it notes each script
// before it runs: a script that a crash cut short is not run twice, and counts as failed. A script that fails does not
// keep the others from running (cloudinit/subp.py, runparts).
func (a *agent) runScripts(ctx context.Context, scripts []userdata.Part) ([]string, error) {
	if len(scripts) == 0 {
		return nil, nil
	}
	path := filepath.Join(a.config.DataDir, "scripts-"+a.self().ID)
	if exists(path) {
		return readScriptRecord(path)
	}
	record := newScriptRecord(scripts)
	if err := record.write(path); err != nil {
		return nil, fmt.Errorf("noting that scripts of the user data run: %w", err)
	}
	for i, script := range scripts {
		record.Scripts[i].State = scriptRuns
		if err := record.write(path); err != nil {
			return nil, fmt.Errorf("noting that a script of the user data runs: %w", err)
		}
		started := time.Now()
		err := a.runScript(ctx, i, script)
		if ctx.Err() != nil {
			return nil, ctx.Err() // the machine goes down; the record says that the script ran
		}
		record.Scripts[i].State = scriptDone
		if err != nil {
			record.Scripts[i].State, record.Scripts[i].Failure = scriptFailed, err.Error()
			a.log.Error("script of the user data failed", "script", script.Name, "error", withoutLines(err), "log", scriptLog)
		} else {
			a.log.Info("script of the user data ran", "script", script.Name, "took", time.Since(started))
		}
		if err := record.write(path); err != nil {
			return nil, fmt.Errorf("noting how a script of the user data ended: %w", err)
		}
	}
	return record.failures(), nil
}

// scriptLog takes what scripts print, which may be secret.
const scriptLog = "user-data.log"

// scriptError is how a script failed, with what it printed last.
type scriptError struct {
	how   error
	lines string
}

func (e *scriptError) Error() string { return e.how.Error() + lastLines(e.lines) }
func (e *scriptError) Unwrap() error { return e.how }

// withoutLines is an error for the log, which does not repeat what scripts print.
func withoutLines(err error) error {
	if failed, ok := errors.AsType[*scriptError](err); ok {
		return failed.how
	}
	return err
}

// runScript runs one script to its end. The kernel finds its interpreter, by its first line.
func (a *agent) runScript(ctx context.Context, i int, script userdata.Part) error {
	if !bytes.HasPrefix(script.Content, []byte("#!")) {
		return errors.New("it does not begin with #! and an interpreter")
	}
	dir := filepath.Join(a.config.DataDir, scriptDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making directory %s: %w", dir, err)
	}
	path := filepath.Join(dir, fmt.Sprintf("part-%03d", i+1))
	if err := atomicfile.Replace(path, script.Content, 0o700); err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	defer func() { _ = os.Remove(path) }() // it may hold secrets, and its text is in the user data
	logPath := filepath.Join(a.config.LogDir, scriptLog)
	output, err := openLog(logPath)
	if err != nil {
		return err
	}
	begin, err := output.Seek(0, io.SeekEnd)
	if err != nil {
		_ = output.Close()
		return fmt.Errorf("seeking in log %s: %w", logPath, err)
	}
	pid, ended, err := a.reaper.start(path, nil, environment(), output)
	_ = output.Close()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such interpreter as its first line names")
	case err != nil:
		return err
	}
	if err := a.waitForScript(ctx, script.Name, logPath, begin, pid, ended); err != nil {
		return &scriptError{how: err, lines: tail(logPath, begin, quotedLines)}
	}
	return nil
}

// waitForScript waits for the end of a script, and makes one that takes too long. It reports one that takes its time.
func (a *agent) waitForScript(ctx context.Context, name, logPath string, begin int64, pid int, ended <-chan unix.WaitStatus) error {
	started := time.Now()
	patience, slow := time.NewTimer(a.config.ScriptPatience), time.NewTicker(a.config.ScriptSlow)
	defer patience.Stop()
	defer slow.Stop()
	defer a.over(bootreport.UserDataSlow)
	var err error
	for err == nil {
		select {
		case status := <-ended:
			if status.Exited() && status.ExitStatus() == 0 {
				return nil
			}
			return errors.New(describe(status))
		case <-slow.C:
			a.report(bootreport.UserDataSlow, fmt.Sprintf("the script %s has been running since %s and has not ended; it is ended at %s%s", name,
				started.UTC().Format(time.RFC3339), started.Add(a.config.ScriptPatience).UTC().Format(time.RFC3339), lastLines(tail(logPath, begin, quotedLines))))
		case <-patience.C:
			err = fmt.Errorf("took longer than %s", a.config.ScriptPatience)
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // with what it started: it leads a session of its own
	<-ended
	return err
}
