// SPDX-License-Identifier: Apache-2.0

package nsenter

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// lastWords is how long output of a program that has ended may take, if something it left running keeps the terminal
// open.
const lastWords = 200 * time.Millisecond

// terminal connects the caller's terminal with a new one of the machine. The caller's own is not passed on: it is in
// another devpts, so tty(1) would know no name for it, and whatever asks for one would refuse to work.
type terminal struct {
	in, out       *os.File // the caller's
	master, slave *os.File // the machine's; the slave goes to the program
	restore       func()
	resized       chan os.Signal
	drained       chan struct{}
}

// openTerminal makes a terminal in the mount namespace of the calling thread.
func openTerminal(in, out *os.File) (*terminal, error) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("opening a terminal on the machine (--tty=false does without): %w", err)
	}
	t := &terminal{in: in, out: out, master: master, restore: func() {}}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		t.slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	}
	if err != nil {
		_ = master.Close()
		return nil, fmt.Errorf("opening a terminal on the machine (--tty=false does without): %w", err)
	}
	t.resize()
	return t, nil
}

// give makes the terminal the controlling one of a program.
func (t *terminal) give(cmd *exec.Cmd) {
	cmd.Stdin, cmd.Stdout, cmd.Stderr = t.slave, t.slave, t.slave
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
}

// resize gives the machine's terminal the size of the caller's.
func (t *terminal) resize() {
	if size, err := unix.IoctlGetWinsize(int(t.out.Fd()), unix.TIOCGWINSZ); err == nil {
		_ = unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size)
	}
}

// connect passes on input, output, and changes of size.
func (t *terminal) connect() {
	if t == nil {
		return
	}
	_ = t.slave.Close() // the program has it; when it has let go, the master is at its end
	if term.IsTerminal(int(t.in.Fd())) {
		if old, err := term.MakeRaw(int(t.in.Fd())); err == nil {
			t.restore = func() { _ = term.Restore(int(t.in.Fd()), old) }
		}
	}
	t.resized = make(chan os.Signal, 1)
	signal.Notify(t.resized, syscall.SIGWINCH)
	go func() {
		for range t.resized {
			t.resize()
		}
	}()
	go func() { // ends with the caller's input, at the latest with the caller
		_, _ = io.Copy(t.master, t.in)
		const endOfTransmission = "\x04" // a terminal's character for the end of its input
		_, _ = t.master.WriteString(endOfTransmission)
	}()
	t.drained = make(chan struct{})
	go func() {
		defer close(t.drained)
		_, _ = io.Copy(t.out, t.master) // ends with EIO
	}()
}

// close brings the caller's terminal back.
func (t *terminal) close() {
	if t == nil {
		return
	}
	if t.drained != nil {
		select {
		case <-t.drained:
		case <-time.After(lastWords):
		}
		signal.Stop(t.resized)
		close(t.resized)
	} else {
		_ = t.slave.Close()
	}
	_ = t.master.Close()
	t.restore()
}
