// SPDX-License-Identifier: Apache-2.0

package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/node/devicemount"
	"muster.dev/muster/internal/platform/userns"
)

// openFiles is how many files a program may open that does not ask for more: what containers may on EKS. With millions,
// programs that close all that could be open take long.
const openFiles = 65536

// Boot is "muster node boot": the first process of a machine, in namespaces that the provider made. It waits for its
// order, makes itself at home, and becomes "muster node". It returns only if that fails.
func Boot() error {
	if os.Getpid() != 1 {
		return errors.New("this command is the first process of a machine: muster starts it itself")
	}
	// A thread takes namespaces for itself alone; the one that calls exec is the one that stays.
	runtime.LockOSThread()
	unix.CloseOnExec(orderFD)
	unix.CloseOnExec(reportFD)
	report := os.NewFile(reportFD, "report")
	err := boot(os.NewFile(orderFD, "order"))
	_, _ = fmt.Fprintln(report, err)
	return err
}

func boot(source *os.File) error {
	raw, err := io.ReadAll(source)
	if err != nil {
		return fmt.Errorf("reading boot order: %w", err)
	}
	var order bootOrder
	if err := json.Unmarshal(raw, &order); err != nil { // cut short: the launcher has ended
		return fmt.Errorf("decoding boot order: %w", err)
	}
	unix.Umask(0o022)
	// It is in the machine's control groups by now, so these become the roots of what it sees.
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil {
		return fmt.Errorf("taking control group namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(order.Record.PrivateDNSName)); err != nil {
		return fmt.Errorf("setting host name: %w", err)
	}
	if err := buildRoot(order); err != nil {
		return err
	}
	// Every limit that the service was started with would be the machine's for good. Where it cannot be raised,
	// containers have it, too.
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err == nil {
		files.Cur = min(files.Max, openFiles)
		_ = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &files)
	}
	env := os.Environ()
	if order.Record.IDs.Own() {
		listener, err := userns.ConfineListening()
		if err != nil {
			return err
		}
		if listener >= 0 { // the agent answers: nothing on the machine is mounted without it
			if env, err = devicemount.Pass(listener, env); err != nil {
				return err
			}
		}
	}
	if err := syscall.Exec(ownProgram, []string{"muster", "node"}, env); err != nil {
		return fmt.Errorf("running muster node: %w", err)
	}
	return nil
}
