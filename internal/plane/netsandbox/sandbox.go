// SPDX-License-Identifier: Apache-2.0

package netsandbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"muster.dev/muster/internal/platform/connectproxy"
	"muster.dev/muster/internal/platform/socketdir"
	"muster.dev/muster/internal/platform/splice"
)

const (
	// proxyPatience is how long the proxy is waited for, dialTimeout how long connecting by it may take.
	proxyPatience, dialTimeout = 5 * time.Second, 20 * time.Second
	// awaitInterval is the time between two looks at the file that is waited for.
	awaitInterval = 200 * time.Millisecond
	// grace is how long the program may take to end once it is told to.
	grace = 5 * time.Second
)

// Config configures a sandbox.
type Config struct {
	// Program is the path of the program, which gets Environment. Lines of the form MUSTER_NAME=VALUE are left out: they
	// are about this process.
	Program     string
	Environment []string
	// Await is a file that is to be readable before the program is started; empty if it waits for none.
	Await string
	// Proxy is the unix socket of the CONNECT proxy, and Reach are the loopback addresses and ports that it dials.
	Proxy string
	Reach []netip.AddrPort
	// Probe is the address and port of the program that ProbeSocket, a unix socket, leads to.
	Probe       netip.AddrPort
	ProbeSocket string
	Log         *slog.Logger
}

func (c Config) check() error {
	if c.Program == "" || c.Proxy == "" || c.ProbeSocket == "" || len(c.Reach) == 0 || c.Log == nil {
		return errors.New("a sandbox needs a program, a proxy, ports to reach, a socket for probes and a log")
	}
	for _, port := range append([]netip.AddrPort{c.Probe}, c.Reach...) {
		if !port.Addr().IsLoopback() || port.Port() == 0 {
			return fmt.Errorf("invalid port %q: must be a loopback address and a port", port)
		}
	}
	return nil
}

// Run runs the program until it ends, which is an error, or the context does.
func Run(ctx context.Context, c Config) error {
	if err := c.check(); err != nil {
		return err
	}
	interfaces, err := net.Interfaces()
	if err != nil {
		return fmt.Errorf("looking at the interfaces of the sandbox: %w", err)
	}
	if err := alone(interfaces); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	defer group.Wait()
	defer cancel()
	probes, err := socketdir.Listen(ctx, c.ProbeSocket)
	if err != nil {
		return err
	}
	group.Go(func() {
		forward(ctx, probes, c.Log, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", c.Probe.String())
		})
	})
	for _, port := range c.Reach {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", port.String())
		if err != nil {
			return fmt.Errorf("listening in the sandbox: %w", err)
		}
		group.Go(func() {
			forward(ctx, listener, c.Log, func(ctx context.Context) (net.Conn, error) {
				return connectproxy.Through(ctx, c.Proxy, port.String(), proxyPatience)
			})
		})
	}
	if c.Await != "" && await(ctx, c.Await) != nil {
		return nil
	}
	return c.program(ctx)
}

// alone refuses a network namespace with more than the loopback interface.
func alone(interfaces []net.Interface) error {
	for _, one := range interfaces {
		// tunl0, sit0 and their like are in each new namespace where the kernel has the module, and down.
		if one.Flags&net.FlagLoopback == 0 && one.Flags&net.FlagUp != 0 {
			return fmt.Errorf("the interface %s is up here, where the program's ports would be open to others: the program needs a network namespace of its own, "+
				"which the supervisor gives to components that have users of their own (muster status says why they have none)", one.Name)
		}
	}
	return nil
}

// await returns when a file can be read.
func await(ctx context.Context, path string) error {
	for {
		if file, err := os.Open(path); err == nil {
			return file.Close()
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(awaitInterval):
		}
	}
}

// forward passes connections on until the context ends.
func forward(ctx context.Context, listener net.Listener, log *slog.Logger, dial func(context.Context) (net.Conn, error)) {
	defer context.AfterFunc(ctx, func() { _ = listener.Close() })()
	var group sync.WaitGroup
	defer group.Wait()
	for {
		accepted, err := listener.Accept()
		if errors.Is(err, net.ErrClosed) || ctx.Err() != nil {
			return
		}
		if err != nil { // too many open files, for one
			log.Warn("accepting a connection", "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(awaitInterval):
			}
			continue
		}
		group.Go(func() {
			dialling, stop := context.WithTimeout(ctx, dialTimeout)
			defer stop()
			to, err := dial(dialling)
			if err != nil {
				log.Debug("passing a connection on", "error", err)
				_ = accepted.Close()
				return
			}
			splice.Join(ctx, accepted, to)
		})
	}
}

// program runs the program. The kernel kills it when the thread that started it ends, so that thread is kept.
func (c Config) program(ctx context.Context) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cmd := exec.CommandContext(ctx, c.Program)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	cmd.Env = environment(c.Environment)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(syscall.SIGTERM) }, grace
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = errors.New("it ended by itself")
	}
	return fmt.Errorf("running %s: %w", c.Program, err)
}

// environment is what the program gets of this process's environment: the marks by which the supervisor knows this
// process must be on no other.
func environment(all []string) (left []string) {
	for _, line := range all {
		if !strings.HasPrefix(line, "MUSTER_") {
			left = append(left, line)
		}
	}
	return left
}
