// SPDX-License-Identifier: Apache-2.0

package loopservice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"muster.dev/muster/internal/node/losetup"
	"muster.dev/muster/internal/platform/blockfs"
	"muster.dev/muster/internal/platform/lograte"
	"muster.dev/muster/internal/platform/loopdevice"
)

const (
	// lookInterval is how often it is looked which machines run.
	lookInterval = time.Second
	// checkInterval is how often it is looked whether devices were detached by others.
	checkInterval = 10 * time.Second
	// maxConnections is how many connections of a machine are answered at a time. Each may hang.
	maxConnections = 4
	// requestPatience is how long a machine may take for its request, and for reading the answer.
	requestPatience = 5 * time.Second
)

// Machines are the machines of this host, as far as loop devices go.
type Machines interface {
	// Isolated are the machines that run and may ask, and which boot of theirs it is.
	Isolated() (map[string]string, error)
	// Listen makes a unix socket that root on the machine reaches at a path.
	Listen(id, socket string) (net.Listener, error)
	// Loops are the devices of a machine.
	Loops(id string) ([]loopdevice.Device, error)
	// AttachLoop makes a file that the machine has opened a device of it.
	AttachLoop(id string, file *os.File, readOnly bool) (loopdevice.Device, error)
	// DetachLoop takes the file from one of the machine's devices.
	DetachLoop(id string, number int) error
	// ResizeLoop lets one of them have the size that its file has by now.
	ResizeLoop(id string, number int) error
	// MountDevice makes a mount of the file system on a block device that the machine is lent and has opened. Errors
	// wrap the errno that mount(2) has for them.
	MountDevice(ctx context.Context, id string, device *os.File, fileSystem blockfs.Request) (*os.File, error)
	// CheckLoops withdraws devices that somebody else has detached.
	CheckLoops(id string) error
}

// Server answers all machines.
type Server struct {
	Machines Machines
	Log      *slog.Logger
	// Refused is told why a machine was not given a device, with the error of Machines.AttachLoop. A machine may have
	// it called often.
	Refused func(ctx context.Context, machine string, err error)
}

// Start answers machines until the context ends.
func (s *Server) Start(ctx context.Context) error {
	if s.Machines == nil || s.Log == nil || s.Refused == nil {
		return errors.New("loop devices need machines, a log and somebody who is told of refusals")
	}
	all := map[string]*answering{}
	said := map[string]string{}
	ticker := time.NewTicker(lookInterval)
	defer ticker.Stop()
	for {
		s.look(ctx, all, said)
		select {
		case <-ctx.Done():
			for _, one := range all {
				one.stop()
			}
			return nil
		case <-ticker.C:
		}
	}
}

// look begins with machines that have booted, and ends with those that are gone. It waits for no machine.
func (s *Server) look(ctx context.Context, all map[string]*answering, said map[string]string) {
	running, err := s.Machines.Isolated()
	if err != nil {
		s.warn(ctx, said, "", err)
		return
	}
	delete(said, "")
	for id, one := range all {
		select {
		case err := <-one.begun:
			if err == nil {
				delete(said, id)
				break
			}
			s.warn(ctx, said, id, err) // it is still booting, mostly
			one.stop()
			delete(all, id)
		default:
		}
		if running[id] != one.boot {
			one.stop()
			delete(all, id)
		}
	}
	for id, boot := range running {
		if all[id] != nil {
			continue
		}
		one := &answering{id: id, boot: boot, machines: s.Machines, refused: s.Refused, log: lograte.Logger(s.Log).With("machine", id), begun: make(chan error, 1)}
		one.begin(ctx)
		all[id] = one
	}
}

// warn says the same of a machine once.
func (s *Server) warn(ctx context.Context, said map[string]string, id string, err error) {
	if said[id] != err.Error() && ctx.Err() == nil {
		s.Log.WarnContext(ctx, "a machine cannot have loop devices yet", "machine", id, "error", err)
		said[id] = err.Error()
	}
}

// answering answers the requests of one boot of a machine. stop does not wait for calls that hang on the machine: they
// end with the machine.
type answering struct {
	id, boot string
	machines Machines
	refused  func(ctx context.Context, machine string, err error)
	log      *slog.Logger

	begun chan error // that the machine has its socket, or why not
	stop  context.CancelFunc
}

// begin makes the machine's socket, for which the machine may hang, and answers there until the context ends or stop is
// called.
func (a *answering) begin(ctx context.Context) {
	ctx, a.stop = context.WithCancel(ctx)
	go func() {
		listener, err := a.machines.Listen(a.id, losetup.Socket)
		if err != nil {
			a.begun <- fmt.Errorf("listening for its requests: %w", err)
			return
		}
		a.begun <- nil
		context.AfterFunc(ctx, func() { _ = listener.Close() })
		go a.check(ctx)
		a.accept(ctx, listener)
	}()
}

func (a *answering) accept(ctx context.Context, listener net.Listener) {
	answered := make(chan struct{}, maxConnections)
	for {
		select {
		case answered <- struct{}{}:
		case <-ctx.Done():
			return
		}
		connection, err := listener.Accept()
		if err != nil {
			if errors.Is(err, net.ErrClosed) {
				return
			}
			<-answered
			select { // no descriptor is left, perhaps
			case <-time.After(time.Second):
				continue
			case <-ctx.Done():
				return
			}
		}
		go func() {
			defer func() { <-answered }()
			a.answer(ctx, connection)
		}()
	}
}

// check looks for devices that others have detached.
func (a *answering) check(ctx context.Context) {
	ticker := time.NewTicker(checkInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.machines.CheckLoops(a.id); err != nil {
			a.log.WarnContext(ctx, "looking after the loop devices of a machine", "error", err)
		}
	}
}
