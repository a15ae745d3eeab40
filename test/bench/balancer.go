// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/machine/local"
	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/platform/host"
)

const (
	balancedPort  = 15001
	balancerPhase = 2 * time.Second // of each measurement in a round
	chunk         = 256 << 10
)

// balancedService is a Service in front of a server on the machine with an address.
const balancedService = `apiVersion: v1
kind: Service
metadata: {name: bench}
spec: {type: LoadBalancer, ports: [{port: %[2]d}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: bench-1, labels: {kubernetes.io/service-name: bench}}
addressType: IPv4
ports: [{port: %[2]d}]
endpoints: [{addresses: [%[1]s]}]
`

// reach is a way to the server.
type reach struct {
	name string
	dial func(context.Context) (net.Conn, error)

	throughput, latency []float64
}

// benchBalancer measures a load balancer, opened from the host, beside connections from the VPC's namespace to the same
// server on a machine, in turns.
func benchBalancer(ctx context.Context, bin string, rounds int) error {
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "1"); err != nil {
		return err
	}
	machines, err := t.machines(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(machines[0].Status.Addresses, func(a corev1.NodeAddress) bool { return a.Type == corev1.NodeInternalIP })
	if at < 0 {
		return errors.New("the machine has no address")
	}
	address, err := netip.ParseAddr(machines[0].Status.Addresses[at].Address)
	if err != nil {
		return err
	}
	end, err := t.serveOn(ctx, machines[0].Name, netip.AddrPortFrom(address, balancedPort))
	if err != nil {
		return err
	}
	defer end()
	network, err := vpc.OpenDefault(t.state().VPCs())
	if err != nil {
		return err
	}
	dialer, err := network.NewDialer(nil) // which is asked about nothing
	if err != nil {
		return err
	}
	defer dialer.Close()
	endpoints, err := network.Endpoints()
	if err != nil || len(endpoints) == 0 {
		return errors.Join(errors.New("the cluster has no endpoint"), err)
	}
	balanced, err := t.balance(ctx, address)
	if err != nil {
		return err
	}
	ways := []*reach{
		{name: "direct", dial: func(ctx context.Context) (net.Conn, error) {
			return dialer.Dial(ctx, endpoints[0].Addresses[0], netip.AddrPortFrom(address, balancedPort))
		}},
		{name: "balancer", dial: func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp4", balanced)
		}},
	}
	for range rounds {
		for _, way := range ways {
			if err := way.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
		}
		slices.Reverse(ways)
	}
	slices.SortFunc(ways, func(a, b *reach) int { return -strings.Compare(a.name, b.name) })
	return report(ways[0], ways[1], rounds)
}

// report prints both ways, and how they compare.
func report(direct, balanced *reach, rounds int) error {
	w := newTable()
	_, _ = fmt.Fprintln(w, "median\tMiB/s of one connection\tmicroseconds for a byte and back\tn\t")
	for _, way := range []*reach{direct, balanced} {
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%d\t\n", way.name, middle(way.throughput), middle(way.latency), rounds)
	}
	_, _ = fmt.Fprintf(w, "%s as multiple of %s\t%.2f\t%.2f\t\t\n", balanced.name, direct.name, middle(balanced.throughput)/middle(direct.throughput),
		middle(balanced.latency)/middle(direct.latency))
	return w.Flush()
}

func middle(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// serveOn runs a server in the network of a machine: by the first byte of a connection it sends without end, or sends
// each byte back.
func (t trial) serveOn(ctx context.Context, machine string, at netip.AddrPort) (end func(), err error) {
	running, err := local.Running(t.state())
	if err != nil {
		return nil, err
	}
	if running[machine] == 0 {
		return nil, fmt.Errorf("machine %s does not run", machine)
	}
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", running[machine]))
	if err != nil {
		return nil, err
	}
	defer func() { _ = namespace.Close() }()
	var listener net.Listener
	err = host.InNetwork(namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", at.String())
		return err
	})
	if err != nil {
		return nil, err
	}
	go serveAll(listener)
	return func() { _ = listener.Close() }, nil
}

// The first bytes of a client, which tell the server what to do.
const (
	askStream = 's'
	askEcho   = 'e'
)

func serveAll(listener net.Listener) {
	for {
		connection, err := listener.Accept()
		if err != nil {
			return
		}
		go serveBytes(connection)
	}
}

func serveBytes(connection net.Conn) {
	defer func() { _ = connection.Close() }()
	what := make([]byte, 1)
	if _, err := io.ReadFull(connection, what); err != nil {
		return
	}
	if what[0] == askEcho {
		_, _ = connection.Write(what)
		_, _ = io.Copy(connection, connection)
		return
	}
	for block := make([]byte, chunk); ; {
		if _, err := connection.Write(block); err != nil {
			return
		}
	}
}

// balance makes the Service, and returns where it is opened from the host.
func (t trial) balance(ctx context.Context, address netip.Addr) (string, error) {
	manifest := filepath.Join(t.dir, "bench.yaml")
	if err := os.WriteFile(manifest, fmt.Appendf(nil, balancedService, address, balancedPort), 0o600); err != nil {
		return "", err
	}
	if _, err := t.mustKubectl(ctx, "apply", "-f", manifest); err != nil {
		return "", err
	}
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		ip, err := t.mustKubectl(ctx, "get", "service", "bench", "-o", "jsonpath={.status.loadBalancer.ingress[0].ip}")
		if err != nil {
			return "", err
		}
		if ip != "" {
			return net.JoinHostPort(ip, fmt.Sprint(balancedPort)), nil
		}
	}
	return "", errors.New("the Service has no address after a minute")
}

func (t trial) mustKubectl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(t.bin, "kubectl"), args...)
	cmd.Env = t.environ()
	var out, talk bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &talk
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, talk.String())
	}
	return out.String(), nil
}

// measure takes each figure once.
func (r *reach) measure(ctx context.Context) error {
	stream, err := r.open(ctx, askStream)
	if err != nil {
		return err
	}
	defer func() { _ = stream.Close() }()
	block, got := make([]byte, chunk), 0
	begun := time.Now()
	for time.Since(begun) < balancerPhase {
		n, err := stream.Read(block)
		if err != nil {
			return err
		}
		got += n
	}
	r.throughput = append(r.throughput, float64(got)/(1<<20)/time.Since(begun).Seconds())
	_ = stream.Close()

	echo, err := r.open(ctx, askEcho)
	if err != nil {
		return err
	}
	defer func() { _ = echo.Close() }()
	trips, one := 0, make([]byte, 1)
	begun = time.Now()
	for ; time.Since(begun) < balancerPhase; trips++ {
		if _, err := echo.Write(one); err != nil {
			return err
		}
		if _, err := io.ReadFull(echo, one); err != nil {
			return err
		}
	}
	r.latency = append(r.latency, float64(time.Since(begun).Microseconds())/float64(trips))
	return nil
}

// open connects and asks; an echo has come back once.
func (r *reach) open(ctx context.Context, what byte) (net.Conn, error) {
	connection, err := r.dial(ctx)
	if err != nil {
		return nil, err
	}
	if _, err = connection.Write([]byte{what}); err == nil && what == askEcho {
		_, err = io.ReadFull(connection, make([]byte, 1))
	}
	if err != nil {
		return nil, errors.Join(err, connection.Close())
	}
	return connection, nil
}
