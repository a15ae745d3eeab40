// SPDX-License-Identifier: Apache-2.0

package planefront

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/frontservers"
	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/process"
)

// process runs a front as a process of its own, until it answers.
func (w *world) process(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd, _ := w.begin(t)
	soon(t, "the process offers its listener", func() bool { return w.offered() })
	return cmd
}

// begin starts a front as a process of its own. ended is closed when it has ended.
func (w *world) begin(t *testing.T) (cmd *exec.Cmd, ended <-chan struct{}) {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"Listen": w.config.Listen.String(), "Servers": w.config.Servers, "Authority": w.config.Authority, "Socket": w.config.Socket,
		"Descriptors": w.descriptors, "Patience": w.patience,
	})
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envFront+"="+string(raw))
	cmd.Stderr = t.Output()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(over)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-over
	})
	return cmd, over
}

// A serving front that hangs is ended after a while, since nobody else accepts connections.
func TestAFrontThatHangs(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	old, over := w.begin(t)
	soon(t, "the front serves", func() bool { got, _ := w.ask(); return got == "a" && w.offered() })
	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	soon(t, "the front is stopped", func() bool {
		stat, err := process.ReadStat(fmt.Sprintf("/proc/%d", old.Process.Pid))
		return err == nil && stat.State == 'T'
	})
	w.patience = time.Second
	_, ended := w.begin(t)
	soon(t, "the next front serves", func() bool {
		select {
		case <-ended:
			t.Fatal("the next front has ended")
		default:
		}
		got, _ := w.ask()
		return got == "a"
	})
	<-over
	if old.ProcessState.Success() {
		t.Errorf("the front that hung: %v", old.ProcessState)
	}
}

// A front gives its listener to no front that was started before it, as one does that nobody waits for any more.
func TestAnOlderNextFront(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	w.process(t)
	older, err := New(w.config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := older.Run(ctx); !errors.Is(err, handover.ErrLater) {
		t.Errorf("the older front: %v", err)
	}
	if got, err := w.ask(); got != "a" {
		t.Errorf("%q, %v", got, err)
	}
}

// Whichever of two fronts is killed at whichever moment of a handover: somebody serves who is asked by the next one, and
// in the end a single one runs.
func TestHandoversThatAreKilled(t *testing.T) {
	a := newBackend(t, "a")
	w := newWorld(t, frontservers.Server{Address: a.address})
	type front struct {
		cmd   *exec.Cmd
		ended <-chan struct{}
	}
	begin := func() front {
		cmd, ended := w.begin(t)
		return front{cmd, ended}
	}
	running := func(all []front) []front {
		return slices.DeleteFunc(all, func(f front) bool {
			select {
			case <-f.ended:
				return true
			default:
				return false
			}
		})
	}
	serves := func() bool { got, _ := w.ask(); return got == "a" }
	all := []front{begin()}
	soon(t, "the first one serves", serves)
	random := rand.New(rand.NewPCG(1, 0))
	for range 20 {
		all = append(all, begin())
		<-time.After(time.Duration(random.IntN(60)) * time.Millisecond)
		killed := all[random.IntN(len(all))]
		_ = killed.cmd.Process.Kill()
		<-killed.ended
		soon(t, "one of them serves", func() bool {
			if all = running(all); len(all) == 0 { // the old one has gone, and the next one was killed
				all = append(all, begin())
			}
			return serves()
		})
	}
	all = append(all, begin())
	soon(t, "a single one runs", func() bool { all = running(all); return len(all) == 1 && serves() })
	<-time.After(10 * busyEvery)
	if len(running(all)) != 1 || !serves() {
		t.Error("the last one has ended")
	}
}
