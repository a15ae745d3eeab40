// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// endPatience is how long what was started ahead may take to clean up.
const endPatience = 10 * time.Second

// ahead starts a command that prints to a file, in a session of its own, and returns what ends all of that.
func ahead(command []string, path string) (end func(), err error) {
	file, err := os.Create(path)
	if err != nil {
		return nil, fmt.Errorf("making the log of what is done ahead: %w", err)
	}
	defer func() { _ = file.Close() }()             // the command has its own
	cmd := exec.Command(command[0], command[1:]...) //nolint:noctx // no context ends all of a session
	cmd.Stdout, cmd.Stderr = file, file
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting what is done ahead: %w", err)
	}
	return sync.OnceFunc(func() {
		group := -cmd.Process.Pid
		_ = syscall.Kill(group, syscall.SIGINT) // at which go removes its temporary files
		late := time.AfterFunc(endPatience, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
		_ = cmd.Wait()
		late.Stop()
		_ = syscall.Kill(group, syscall.SIGKILL) // whoever did not listen
	}), nil
}
