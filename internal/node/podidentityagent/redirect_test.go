// SPDX-License-Identifier: Apache-2.0

package podidentityagent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

func TestRedirection(t *testing.T) {
	const want = `table inet muster-pod-identity
delete table inet muster-pod-identity
table inet muster-pod-identity {
	chain prerouting {
		type nat hook prerouting priority -110; policy accept;
		ip daddr 169.254.170.23 tcp dport 80 dnat ip to 169.254.170.23:303
		ip6 daddr fd00:ec2::23 tcp dport 80 dnat ip6 to [fd00:ec2::23]:303
	}
	chain output {
		type nat hook output priority -110; policy accept;
		ip daddr 169.254.170.23 tcp dport 80 dnat ip to 169.254.170.23:303
		ip6 daddr fd00:ec2::23 tcp dport 80 dnat ip6 to [fd00:ec2::23]:303
	}
}
`
	if got := redirection(); got != want {
		t.Errorf("got\n%s", got)
	}
}

// machineAndPod are two network namespaces, with a pair of links between them as a pod and its machine have.
type machineAndPod struct {
	t            *testing.T
	machine, pod *os.File
}

const (
	machineAddress, machineAddress6 = "10.9.0.1", "fd00:9::1"
	podAddress, podAddress6         = "10.9.0.2", "fd00:9::2"
)

func newMachineAndPod(t *testing.T) machineAndPod {
	t.Helper()
	w := machineAndPod{t: t}
	w.machine, w.pod = w.namespace(), w.namespace()
	w.ip(w.machine, "link", "set", "lo", "up")
	w.ip(w.machine, "link", "add", "veth0", "type", "veth", "peer", "name", "eth0", "netns", fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.pod.Fd()))
	for _, end := range []struct {
		space                   *os.File
		link, address, address6 string
	}{{w.machine, "veth0", machineAddress, machineAddress6}, {w.pod, "eth0", podAddress, podAddress6}} {
		w.ip(end.space, "address", "add", end.address+"/24", "dev", end.link)
		w.ip(end.space, "address", "add", end.address6+"/64", "dev", end.link, "nodad")
		w.ip(end.space, "link", "set", end.link, "up")
	}
	w.ip(w.pod, "route", "add", "default", "via", machineAddress)
	w.ip(w.pod, "-6", "route", "add", "default", "via", machineAddress6)
	return w
}

func (w machineAndPod) namespace() *os.File {
	w.t.Helper()
	holder := exec.Command("sleep", "600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	file, err := os.Open(filepath.Join("/proc", strconv.Itoa(holder.Process.Pid), "ns/net"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = file.Close() })
	return file
}

// in runs fn in a namespace.
func (w machineAndPod) in(namespace *os.File, fn func() error) {
	w.t.Helper()
	if err := host.InNetwork(namespace, fn); err != nil {
		w.t.Fatal(err)
	}
}

func (w machineAndPod) ip(namespace *os.File, args ...string) {
	w.t.Helper()
	w.in(namespace, func() error {
		_, err := runHere(w.t.Context(), "ip", args...)
		return err
	})
}

// runHere is a [Run] in the namespace of the calling thread.
func runHere(ctx context.Context, program string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %q: %w: %s", program, args, err, out)
	}
	return string(out), nil
}

// say answers every request with a word and the address that asks.
func say(word string) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		from, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = fmt.Fprint(rw, word, " ", from)
	})
}

func (w machineAndPod) serve(handler http.Handler, listeners ...net.Listener) {
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Second}
	w.t.Cleanup(func() { _ = server.Close() })
	for _, listener := range listeners {
		go func() { _ = server.Serve(listener) }()
	}
}

// dialer connects in a namespace.
func (w machineAndPod) dialer(namespace *os.File) func(ctx context.Context, network, address string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (conn net.Conn, err error) {
		err = host.InNetwork(namespace, func() error {
			conn, err = new(net.Dialer).DialContext(ctx, network, address)
			return err
		})
		return conn, err
	}
}

// asks returns what an address answers in a namespace.
func (w machineAndPod) asks(namespace *os.File, at string) string {
	w.t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       w.dialer(namespace),
	}}
	response, err := client.Get("http://" + at + "/")
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// A program of the host network has port 80 of all addresses, and a pod has it as its host port: the agent gets what is
// sent to its addresses, from the address that sent it, and the program the rest.
func TestPort80IsFree(t *testing.T) {
	w := newMachineAndPod(t)
	var agent []net.Listener
	w.in(w.machine, func() (err error) {
		// The rules that the plugin portmap makes for a host port.
		if _, err = runHere(t.Context(), "nft", `table inet hostports { chain prerouting { type nat hook prerouting priority -100; tcp dport 80 fib daddr type local dnat ip to 10.9.0.2:8080; }; }`); err != nil {
			return err
		}
		if agent, err = Listen(t.Context(), slog.New(slog.DiscardHandler), runHere); err != nil {
			return err
		}
		return errors.Join(Redirect(t.Context(), runHere), Redirected(t.Context(), runHere)) // again, as after an end of the agent
	})
	w.serve(say("agent"), agent...)
	var all net.Listener
	w.in(w.machine, func() (err error) {
		all, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ":80")
		return err
	})
	w.serve(say("program"), all)

	if len(agent) != 2 {
		t.Fatalf("%d listeners: want one for IPv4 and one for IPv6", len(agent))
	}
	for _, c := range []struct {
		from     *os.File
		at, want string
	}{
		{w.pod, AddressIPv4, "agent " + podAddress},
		{w.pod, "[" + AddressIPv6 + "]", "agent " + podAddress6},
		{w.machine, AddressIPv4, "agent " + AddressIPv4},
		{w.machine, "[" + AddressIPv6 + "]", "agent " + AddressIPv6},
		{w.machine, "127.0.0.1", "program 127.0.0.1"},
		{w.pod, "[" + machineAddress6 + "]", "program " + podAddress6},
	} {
		if got := w.asks(c.from, c.at); got != c.want {
			t.Errorf("%s answers %q: want %q", c.at, got, c.want)
		}
	}
}

// Rules that cannot be made are an error, which has what nft says, and the machine has no address then that leads pods
// to a program on port 80.
func TestRedirectFails(t *testing.T) {
	w := newMachineAndPod(t)
	refuses := func(context.Context, string, ...string) (string, error) {
		return "", errors.New("Error: Could not process rule")
	}
	var all net.Listener
	w.in(w.machine, func() (err error) {
		if _, err := Listen(t.Context(), slog.New(slog.DiscardHandler), refuses); err == nil || err.Error() != "leading port 80 of the pod identity agent to it: Error: Could not process rule" {
			t.Error(err)
		}
		all, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ":80")
		return err
	})
	w.serve(say("program"), all)
	for _, at := range []string{AddressIPv4, "[" + AddressIPv6 + "]"} {
		if got := w.asks(w.machine, at); strings.HasPrefix(got, "program") {
			t.Errorf("%s leads to a program: %s", at, got)
		}
	}
}

// A program on port 80 that says it is well, as many do, hides from nobody that the rules are gone.
func TestRulesAreGone(t *testing.T) {
	for _, flush := range [][]string{{"flush", "ruleset"}, {"flush", "chain", "inet", table, "output"}} {
		w := newMachineAndPod(t)
		var agent []net.Listener
		var all net.Listener
		w.in(w.machine, func() (err error) {
			if agent, err = Listen(t.Context(), slog.New(slog.DiscardHandler), runHere); err != nil {
				return err
			}
			all, err = new(net.ListenConfig).Listen(t.Context(), "tcp", ":80")
			return err
		})
		w.serve(say("agent"), agent...)
		w.serve(say("program"), all)
		w.in(w.machine, func() error {
			if _, err := runHere(t.Context(), "nft", flush...); err != nil {
				return err
			}
			if err := Redirected(t.Context(), runHere); err == nil {
				t.Errorf("nft %q is not noticed", flush)
			}
			return nil
		})
		if err := Probe(t.Context(), w.dialer(w.machine)); err != nil {
			t.Error(err)
		}
	}
}
