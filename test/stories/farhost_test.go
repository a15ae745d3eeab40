// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/miekg/dns"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/platform/host"
)

// Addresses and names in a story about the way out. 198.18.0.0/15 is for measurements between networks (RFC 2544):
// nobody's, and not private.
const (
	farHostAddress    = "198.18.0.1" // the host's own
	farAddress        = "198.18.0.2"
	farPrivateAddress = "10.99.0.1"
	farName           = "far.example.com"
	farGreeting       = "this is far away"
)

// farHost is a host of its own: a network in which muster runs as on a host, with a server and a name server behind its
// one uplink. It has its own /etc/resolv.conf.
type farHost struct {
	t         *testing.T
	pid       int // of a process in its namespaces
	near, far *os.File
	queries   atomic.Int64

	mutex  sync.Mutex
	called map[string]bool
}

func newFarHost(t *testing.T) *farHost {
	t.Helper()
	h := &farHost{t: t, called: map[string]bool{}}
	h.pid, h.near = holdNamespaces(t, unix.CLONE_NEWNET|unix.CLONE_NEWNS)
	var farPid int
	farPid, h.far = holdNamespaces(t, unix.CLONE_NEWNET)
	resolv := filepath.Join(t.TempDir(), "resolv.conf")
	if err := os.WriteFile(resolv, []byte("nameserver "+farAddress+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	target, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{
		"mount --make-rprivate /", "mount --bind " + resolv + " " + target,
		"sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1",
		"ip link set lo up",
		fmt.Sprintf("ip link add uplink type veth peer name downlink netns %d", farPid),
		"ip addr add " + farHostAddress + "/24 dev uplink", "ip link set uplink up",
	} {
		h.run(h.pid, command)
	}
	for _, command := range []string{
		"ip link set lo up", "ip addr add " + farAddress + "/24 dev downlink", "ip addr add " + farPrivateAddress + "/32 dev lo", "ip link set downlink up",
	} {
		h.run(farPid, command)
	}
	h.run(h.pid, "ip route add default via "+farAddress)
	h.serve(h.far, ":80", farGreeting)
	h.serve(h.near, ":8080", farGreeting)
	h.serveNames()
	return h
}

// holdNamespaces keeps new namespaces until the test ends.
func holdNamespaces(t *testing.T, flags uintptr) (int, *os.File) {
	t.Helper()
	holder := exec.Command("sleep", "3600")
	holder.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flags, Pdeathsig: syscall.SIGKILL}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = holder.Process.Kill()
		_ = holder.Wait()
	})
	file, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return holder.Process.Pid, file
}

// enter is what runs a program on the host.
func (h *farHost) enter() []string {
	return []string{"nsenter", "--target=" + strconv.Itoa(h.pid), "--net", "--mount", "--"}
}

func (h *farHost) run(pid int, command string) {
	h.t.Helper()
	args := append([]string{"--target=" + strconv.Itoa(pid), "--net", "--mount", "--"}, strings.Fields(command)...)
	if out, err := exec.CommandContext(h.t.Context(), "nsenter", args...).CombinedOutput(); err != nil {
		h.t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// serve answers HTTP in a namespace.
func (h *farHost) serve(namespace *os.File, address, greeting string) {
	h.t.Helper()
	var listener net.Listener
	if err := host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(h.t.Context(), "tcp4", address)
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	server := &http.Server{ReadHeaderTimeout: 10 * time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		from, _, _ := net.SplitHostPort(request.RemoteAddr)
		h.mutex.Lock()
		h.called[from] = true
		h.mutex.Unlock()
		_, _ = io.WriteString(w, greeting)
	})}
	go func() { _ = server.Serve(listener) }()
	h.t.Cleanup(func() { _ = server.Close() })
}

// callers are the addresses that servers were called from.
func (h *farHost) callers() []string {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return slices.Sorted(maps.Keys(h.called))
}

// serveNames knows one name.
func (h *farHost) serveNames() {
	h.t.Helper()
	var packets net.PacketConn
	if err := host.InNetwork(h.far, func() (err error) {
		packets, err = new(net.ListenConfig).ListenPacket(h.t.Context(), "udp4", farAddress+":53")
		return err
	}); err != nil {
		h.t.Fatal(err)
	}
	record, err := dns.NewRR(farName + ". 5 IN A " + farAddress)
	if err != nil {
		h.t.Fatal(err)
	}
	server := &dns.Server{PacketConn: packets, Handler: dns.HandlerFunc(func(w dns.ResponseWriter, query *dns.Msg) {
		h.queries.Add(1)
		reply := new(dns.Msg).SetReply(query)
		switch question := query.Question[0]; {
		case !strings.EqualFold(question.Name, farName+"."):
			reply.Rcode = dns.RcodeNameError
		case question.Qtype == dns.TypeA:
			reply.Answer = []dns.RR{record}
		}
		_ = w.WriteMsg(reply)
	})}
	go func() { _ = server.ActivateAndServe() }()
	h.t.Cleanup(func() { _ = server.Shutdown() })
}

// sent is how many packets have left the host.
func (h *farHost) sent() int {
	h.t.Helper()
	raw, err := exec.CommandContext(h.t.Context(), h.enter()[0], append(h.enter()[1:], "cat", "/proc/net/dev")...).Output()
	if err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(strings.NewReader(string(raw)))
	for lines.Scan() {
		if numbers, ok := strings.CutPrefix(strings.TrimSpace(lines.Text()), "uplink:"); ok {
			n, err := strconv.Atoi(strings.Fields(numbers)[9]) // packets sent, proc_net(5)
			if err != nil {
				h.t.Fatal(err)
			}
			return n
		}
	}
	h.t.Fatal("the host has no uplink")
	return 0
}

// state is what the host's network is set to: addresses, links, routes, rules, firewall, switches and name servers.
func (h *farHost) state() map[string]string {
	h.t.Helper()
	state := map[string]string{}
	for _, command := range []string{
		"ip addr", "ip route show table all", "ip rule", "nft list ruleset", "cat /etc/resolv.conf",
		"grep -rs . /proc/sys/net/ipv4 /proc/sys/net/ipv6 /proc/sys/net/netfilter --exclude-dir=neigh --exclude=nf_conntrack_count --exclude=nf_conntrack_max --exclude=nf_conntrack_buckets",
	} {
		args := append(slices.Clone(h.enter()[1:]), strings.Fields(command)...)
		out, err := exec.CommandContext(h.t.Context(), h.enter()[0], args...).CombinedOutput()
		if err != nil && !strings.HasPrefix(command, "grep") { // some switches cannot be read
			h.t.Fatalf("%s: %v\n%s", command, err, out)
		}
		state[command] = string(out)
	}
	return state
}

func (h *farHost) expectSame(before map[string]string, when string) {
	h.t.Helper()
	if diff := cmp.Diff(before, h.state()); diff != "" {
		h.t.Errorf("the host's network is not as it was found %s (-before +after):\n%s", when, diff)
	}
}
