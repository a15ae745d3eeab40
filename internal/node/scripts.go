// SPDX-License-Identifier: Apache-2.0

package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/durable"
	"muster.dev/muster/internal/userdata"
)

// scriptPatience is how long one script may hold up the machine.
const scriptPatience = 10 * time.Minute

// runScripts runs the scripts of the user data, in order, the first time that this instance boots. As cloud-init does
// (cloudinit/helpers.py, FileSemaphores) it notes that before: one that was cut short by a crash is not run twice. What fails is
// logged, and the machine joins nevertheless.
func (a *agent) runScripts(ctx context.Context, scripts []userdata.Part) {
	if len(scripts) == 0 {
		return
	}
	marker := filepath.Join(a.config.DataDir, "scripts-"+a.self().ID)
	if exists(marker) {
		return
	}
	if err := durable.Write(marker, []byte(time.Now().UTC().Format(time.RFC3339)+"\n"), 0o600); err != nil {
		a.log.Error("scripts of the user data are not run: cannot note that they were", "error", err)
		return
	}
	for i, script := range scripts {
		started := time.Now()
		if err := a.runScript(ctx, i, script); err != nil {
			a.log.Error("script of the user data failed", "script", script.Name, "error", err, "log", scriptLog)
			continue
		}
		a.log.Info("script of the user data ran", "script", script.Name, "took", time.Since(started))
	}
}

// scriptLog takes what scripts print, which may be secret.
const scriptLog = "user-data.log"

// runScript runs one script to its end. The kernel finds its interpreter, by its first line.
func (a *agent) runScript(ctx context.Context, i int, script userdata.Part) error {
	if !bytes.HasPrefix(script.Content, []byte("#!")) {
		return errors.New("it does not begin with #! and an interpreter")
	}
	dir := filepath.Join(a.config.DataDir, scriptDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}
	path := filepath.Join(dir, fmt.Sprintf("part-%03d", i+1))
	if err := durable.Replace(path, script.Content, 0o700); err != nil {
		return fmt.Errorf("writing it: %w", err)
	}
	defer func() { _ = os.Remove(path) }() // it may hold secrets, and what it was is in the user data
	output, err := openLog(filepath.Join(a.config.LogDir, scriptLog))
	if err != nil {
		return err
	}
	pid, ended, err := a.reaper.start(path, nil, environment(), output)
	_ = output.Close()
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return errors.New("there is no such interpreter as its first line names")
	case err != nil:
		return err
	}
	timer := time.NewTimer(scriptPatience)
	defer timer.Stop()
	select {
	case status := <-ended:
		if status.Exited() && status.ExitStatus() == 0 {
			return nil
		}
		return errors.New(describe(status))
	case <-timer.C:
		err = fmt.Errorf("took longer than %s", scriptPatience)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = unix.Kill(-pid, unix.SIGKILL) // with what it started: it leads a session of its own
	<-ended
	return err
}
