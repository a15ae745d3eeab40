// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/filelock"
	"muster.dev/muster/internal/platform/handover"
	"muster.dev/muster/internal/platform/socketdir"
)

// other is a relay in a process of its own.
type other struct {
	Dir, Socket string
	Former      bool // as one of an earlier release, which hands nothing over
}

func (o other) run() error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM) //nolint:forbidigo // there is no test in this process
	defer stop()
	if o.Former {
		release, err := filelock.Take(o.Dir, lockName)
		if err != nil {
			return err
		}
		defer release()
		ready, err := socketdir.ListenPrivate(ctx, o.Socket)
		if err != nil {
			return err
		}
		return serveReady(ctx, ready)
	}
	n, err := New(Config{Dir: o.Dir, ID: vpcID, CIDR: cidr, Subnets: subnets})
	if err != nil {
		return err
	}
	relay, err := NewRelay(RelayConfig{Network: n, Machines: ours, Socket: o.Socket, Log: slog.New(slog.NewTextHandler(os.Stderr, nil))})
	if err != nil {
		return err
	}
	relay.answerWithin = time.Second
	return relay.Run(ctx)
}

// start starts the process, and returns a channel that is closed when it has ended.
func (o other) start(t *testing.T) (*exec.Cmd, <-chan struct{}) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envRelay+"="+string(raw))
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

// offers waits until a relay can be asked for its sockets.
func (o other) offers(t *testing.T) {
	t.Helper()
	eventually(t, "the relay serves", func() error {
		response, err := egressClient(o.Socket).Get("http://vpc/readyz")
		if err == nil {
			_ = response.Body.Close()
		}
		if err == nil && !o.Former {
			_, err = os.Lstat(filepath.Join(socketdir.Dir(o.Socket), "next"))
		}
		return err
	})
}

// The next relay ends a relay of an earlier release, which hands nothing over, and a relay that hangs. It leaves a relay
// alone that was started later.
func TestOtherRelays(t *testing.T) {
	n := newNetwork(t)
	o := other{Dir: n.dir, Socket: filepath.Join(t.TempDir(), "vpc.sock"), Former: true}
	former, ended := o.start(t)
	o.offers(t)
	relay := other{Dir: o.Dir, Socket: o.Socket}
	hangs, over := relay.start(t)
	<-ended
	if !former.ProcessState.Success() {
		t.Errorf("the former relay: %v", former.ProcessState)
	}
	relay.offers(t)
	if err := hangs.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	_, left := relay.start(t)
	<-over
	relay.offers(t)

	older, err := NewRelay(RelayConfig{Network: n, Machines: ours, Socket: o.Socket, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	if err := older.Run(t.Context()); !errors.Is(err, handover.ErrLater) {
		t.Errorf("the older relay: %v", err)
	}
	select {
	case <-left:
		t.Error("the younger relay has ended")
	default:
	}
}
