// SPDX-License-Identifier: Apache-2.0

package clitest

import (
	"bytes"
	"fmt"
	"os"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// Terminal is a pseudo-terminal with a screen.
type Terminal struct {
	// File is what a program has as its standard output.
	File *os.File

	master *os.File
	marks  chan struct{}
	mu     sync.Mutex
	screen *Screen
}

// NewTerminal opens a terminal of a size, which is not one of CI. Its line discipline turns the ends of lines into CR
// and LF, as people's do.
func NewTerminal(t *testing.T, columns, height int) *Terminal {
	t.Helper()
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("CI", "")
	t.Setenv("NO_COLOR", "")
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = master.Close() })
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	terminal := &Terminal{File: file, master: master, marks: make(chan struct{}, 1), screen: NewScreen(columns, height)}
	var reader sync.WaitGroup
	reader.Go(terminal.read)
	t.Cleanup(func() {
		_ = file.Close() // which ends the reader: nobody has it open any more
		reader.Wait()
	})
	terminal.Resize(t, columns, height)
	return terminal
}

// mark is a character that no program writes: what came before it is on the screen.
const mark = "\x01"

func (t *Terminal) read() {
	buffer := make([]byte, 4096)
	for {
		n, err := t.master.Read(buffer)
		if err != nil { // EIO when the other side is closed
			return
		}
		for i, part := range bytes.Split(buffer[:n], []byte(mark)) {
			if i > 0 {
				t.marks <- struct{}{}
			}
			t.mu.Lock()
			_, _ = t.screen.Write(part)
			t.mu.Unlock()
		}
	}
}

// settle returns when everything that was written is on the screen.
func (t *Terminal) settle(tb testing.TB) {
	tb.Helper()
	if _, err := t.File.WriteString(mark); err != nil {
		tb.Fatal(err)
	}
	<-t.marks
}

// Reflow says whether the terminal breaks lines anew when it is resized.
func (t *Terminal) Reflow(reflows bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.Reflows = reflows
}

// Resize gives the terminal another size, as people do by pulling at a window.
func (t *Terminal) Resize(tb testing.TB, columns, height int) {
	tb.Helper()
	t.settle(tb)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.screen.Resize(columns, height)
	size := &unix.Winsize{Col: uint16(columns), Row: uint16(height)} //nolint:gosec // tests choose small numbers
	if err := unix.IoctlSetWinsize(int(t.master.Fd()), unix.TIOCSWINSZ, size); err != nil {
		tb.Fatal(err)
	}
}

// Lines are the lines that the screen shows, and those that were scrolled off. A terminal that was sent what no program
// should send fails the test.
func (t *Terminal) Lines(tb testing.TB) []string {
	tb.Helper()
	t.settle(tb)
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, problem := range t.screen.Problems {
		tb.Errorf("the terminal was sent %s", problem)
	}
	return t.screen.Lines()
}
