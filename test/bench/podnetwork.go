// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"muster.dev/muster/internal/platform/host"
)

// wire is two network namespaces, and the address at which one is reached from the other.
type wire struct {
	server, client *os.File
	address        netip.Addr
}

func (w wire) close() { _ = errors.Join(w.server.Close(), w.client.Close()) }

// reach is the way of a connection over the wire, to a server that serves until ctx ends.
func (w wire) reach(ctx context.Context, name string) (*reach, error) {
	at := netip.AddrPortFrom(w.address, balancedPort).String()
	var listener net.Listener
	if err := host.InNetwork(w.server, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(ctx, "tcp4", at)
		return err
	}); err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = listener.Close() })
	go serveAll(listener)
	return &reach{name: name, dial: func(ctx context.Context) (connection net.Conn, err error) {
		err = host.InNetwork(w.client, func() error {
			connection, err = new(net.Dialer).DialContext(ctx, "tcp4", at)
			return err
		})
		return connection, err
	}}, nil
}

// benchPodNetwork measures one connection between two pods on two machines, beside one between two namespaces that
// nothing but a pair of links is between, in turns.
func benchPodNetwork(ctx context.Context, bin string, rounds int) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	t, remove, err := newTrial(ctx, bin)
	if err != nil {
		return err
	}
	defer remove()
	if _, err := t.muster(ctx, "up", "--nodes", "2"); err != nil {
		return err
	}
	client, err := t.client()
	if err != nil {
		return err
	}
	if err := t.settled(ctx, client); err != nil {
		return err
	}
	pods, err := podWire(ctx, client, "", "bench")
	if err != nil {
		return err
	}
	defer pods.close()
	plain, err := plainWire()
	if err != nil {
		return err
	}
	defer plain.close()
	var ways []*reach
	for _, one := range []struct {
		name string
		wire wire
	}{{"plain", plain}, {"pods", pods}} {
		way, err := one.wire.reach(ctx, one.name)
		if err != nil {
			return fmt.Errorf("%s: %w", one.name, err)
		}
		ways = append(ways, way)
	}
	first, second := ways[0], ways[1]
	for range rounds {
		for _, way := range ways {
			if err := way.measure(ctx); err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
		}
		slices.Reverse(ways)
	}
	return report(first, second, rounds)
}

// podWire starts a pod on each of two nodes that a selector finds, called NAME-0 and NAME-1, and opens their networks.
func podWire(ctx context.Context, client kubernetes.Interface, selector, name string) (wire, error) {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		return wire{}, err
	}
	if len(nodes.Items) < 2 {
		return wire{}, errors.New("the cluster has less than two nodes")
	}
	var networks []*os.File
	var address netip.Addr // of the first, which serves
	for n, node := range nodes.Items[:2] {
		name := fmt.Sprintf("%s-%d", name, n)
		if _, err := startPod(ctx, client, scratched(benchPod(name, node.Name))); err != nil {
			return wire{}, err
		}
		pod, err := client.CoreV1().Pods(metav1.NamespaceDefault).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return wire{}, err
		}
		if n == 0 {
			if address, err = netip.ParseAddr(pod.Status.PodIP); err != nil {
				return wire{}, err
			}
		}
		network, err := networkOf(string(pod.UID))
		if err != nil {
			return wire{}, err
		}
		networks = append(networks, network)
	}
	return wire{server: networks[0], client: networks[1], address: address}, nil
}

// networkOf finds a process of the pod by its control group, which is named after the pod's uid.
func networkOf(uid string) (*os.File, error) {
	groups, err := filepath.Glob("/proc/[0-9]*/cgroup")
	if err != nil {
		return nil, err
	}
	for _, path := range groups {
		// A process may have gone since.
		if group, err := os.ReadFile(path); err == nil && bytes.Contains(group, []byte("pod"+uid)) {
			return os.Open(filepath.Join(filepath.Dir(path), "ns", "net"))
		}
	}
	return nil, fmt.Errorf("no process is in the control group of pod %s", uid)
}

// plainWire makes two namespaces and a pair of links between them. They are gone when they are closed.
func plainWire() (wire, error) {
	server, err := newNetwork()
	if err != nil {
		return wire{}, err
	}
	client, err := newNetwork()
	if err != nil {
		return wire{}, errors.Join(err, server.Close())
	}
	w := wire{server: server, client: client, address: netip.MustParseAddr("192.0.2.1")}
	err = host.InNetwork(server, func() error {
		return netlink.LinkAdd(&netlink.Veth{
			LinkAttrs: netlink.LinkAttrs{Name: "bench"}, PeerName: "bench", PeerNamespace: netlink.NsFd(client.Fd()),
		})
	})
	for network, address := range map[*os.File]string{server: "192.0.2.1/24", client: "192.0.2.2/24"} {
		if err == nil {
			err = host.InNetwork(network, func() error { return equip(address) })
		}
	}
	if err != nil {
		w.close()
		return wire{}, fmt.Errorf("making a pair of links: %w", err)
	}
	return w, nil
}

// equip gives the link of this thread's network an address.
func equip(address string) error {
	link, err := netlink.LinkByName("bench")
	if err != nil {
		return err
	}
	own, err := netlink.ParseAddr(address)
	if err != nil {
		return err
	}
	if err := netlink.AddrAdd(link, own); err != nil {
		return err
	}
	return netlink.LinkSetUp(link)
}

// newNetwork makes a network namespace that is there as long as the file is open.
func newNetwork() (network *os.File, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		host.OnThread(func() { // which ends with its thread
			if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
				network, err = os.Open("/proc/thread-self/ns/net")
			}
		})
	}()
	<-done
	return network, err
}
