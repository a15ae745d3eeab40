// SPDX-License-Identifier: Apache-2.0

// These tests make network namespaces, which needs root. Their addresses are in those namespaces only.

package vpc

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/host"
)

// directory is of machines with a hop limit each; their ids and user data are their addresses.
type directory map[netip.Addr]int

func (d directory) Lookup(address netip.Addr) (imds.Instance, error) {
	hops, ok := d[address]
	if !ok {
		return imds.Instance{}, imds.ErrNotFound
	}
	return imds.Instance{ID: address.String(), PrivateIP: address, MAC: MAC(address), Network: cidr, HopLimit: hops}, nil
}

func (d directory) UserData(id string) ([]byte, error) { return []byte("for " + id), nil }

// serveMetadata runs a relay with a metadata service until the function that it returns is called.
func serveMetadata(t *testing.T, n *Network, known directory) (stop func()) {
	t.Helper()
	server, err := imds.NewServer(imds.ServerConfig{Directory: known, Key: bytes.Repeat([]byte{1}, 32), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	config := relayConfig(t, n)
	config.Metadata = server
	return runRelay(t, config)
}

// answer asks the metadata service from a namespace, by one request on a connection of its own. From is the address to
// ask from.
func answer(namespace *os.File, from, method, path, header string, patience time.Duration) (string, error) {
	var connection net.Conn
	deadline := time.Now().Add(patience)
	err := host.InNetwork(namespace, func() (err error) {
		dialer := net.Dialer{Deadline: deadline, FallbackDelay: -1}
		if from != "" {
			dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(from)}
		}
		connection, err = dialer.Dial("tcp4", netip.AddrPortFrom(Metadata(), MetadataPort).String())
		return err
	})
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(deadline); err != nil {
		return "", err
	}
	if _, err := fmt.Fprintf(connection, "%s %s HTTP/1.1\r\nHost: %s\r\n%s\r\nConnection: close\r\n\r\n", method, path, Metadata(), header); err != nil {
		return "", err
	}
	response, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = errors.New(response.Status)
	}
	return string(body), err
}

func tokenOf(namespace *os.File, from string, patience time.Duration) (string, error) {
	return answer(namespace, from, http.MethodPut, "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds: 60", patience)
}

func userDataOf(namespace *os.File, token string) (string, error) {
	return answer(namespace, "", http.MethodGet, "/latest/user-data", "X-aws-ec2-metadata-token: "+token, 10*time.Second)
}

// Each machine is told what is its own. A service that is started again honours tokens of its former life.
func TestMetadata(t *testing.T) {
	n := newNetwork(t)
	first, second := newMachine(t, n, firstMachine), newMachine(t, n, secondMachine)
	known := directory{netip.MustParseAddr(firstMachine): 1, netip.MustParseAddr(secondMachine): 1}
	stop := serveMetadata(t, n, known)
	token, err := tokenOf(first, "", generous)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := userDataOf(first, token); err != nil || got != "for "+firstMachine {
		t.Errorf("first machine: %q, %v", got, err)
	}
	if got, err := userDataOf(second, token); err == nil {
		t.Errorf("the second machine used the first one's token: %q", got)
	}
	stop()
	if _, err := userDataOf(first, token); err == nil {
		t.Error("something answers although nothing runs")
	}
	stop = serveMetadata(t, n, known)
	defer stop()
	if got, err := userDataOf(first, token); err != nil || got != "for "+firstMachine {
		t.Errorf("after a restart: %q, %v", got, err)
	}
}

// Answers go one hop: a pod behind a machine gets none, whatever address it asks from, unless the machine has a limit
// of two.
func TestHopLimit(t *testing.T) {
	n := newNetwork(t)
	machine := newMachine(t, n, firstMachine)
	pod := newPod(t, machine)
	if err := n.SetRoute(Route{PodCIDR: netip.MustParsePrefix("10.244.1.0/24"), Machine: netip.MustParseAddr(firstMachine)}); err != nil {
		t.Fatal(err)
	}
	// The service is told that the pod's address is a machine's, as if the machine had translated it: only the hops are
	// left.
	machines := func(hops int) directory {
		return directory{netip.MustParseAddr(firstMachine): hops, netip.MustParseAddr("10.244.1.2"): hops}
	}
	stop := serveMetadata(t, n, machines(1))
	if _, err := tokenOf(machine, "", generous); err != nil {
		t.Errorf("the machine: %v", err)
	}
	if got, err := tokenOf(pod, "", 1500*time.Millisecond); err == nil {
		t.Errorf("a pod got %q", got)
	}
	stop()
	stop = serveMetadata(t, n, machines(2))
	defer stop()
	for name, namespace := range map[string]*os.File{"the machine": machine, "its pod": pod} {
		if _, err := tokenOf(namespace, "", generous); err != nil {
			t.Errorf("with two hops, %s: %v", name, err)
		}
	}
}

// newPod is a namespace behind a machine: one hop further.
func newPod(t *testing.T, machine *os.File) *os.File {
	t.Helper()
	pod := newNamespace(t)
	const outside, inside = "pod0", "eth0"
	gateway := netip.MustParsePrefix("10.244.1.1/24")
	err := withHandle(machine, func(h *netlink.Handle) error {
		attributes := netlink.NewLinkAttrs()
		attributes.Name = outside
		if err := h.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: inside, PeerNamespace: netlink.NsFd(pod.Fd())}); err != nil {
			return err
		}
		link, err := h.LinkByName(outside)
		if err != nil {
			return err
		}
		return errors.Join(h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(gateway)}), h.LinkSetUp(link))
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := host.InNetwork(machine, setRouting); err != nil {
		t.Fatal(err)
	}
	err = withHandle(pod, func(h *netlink.Handle) error {
		link, err := h.LinkByName(inside)
		if err != nil {
			return err
		}
		if err := errors.Join(h.AddrReplace(link, &netlink.Addr{IPNet: ipNet(netip.MustParsePrefix("10.244.1.2/24"))}), h.LinkSetUp(link)); err != nil {
			return err
		}
		return h.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: net.IP(gateway.Addr().AsSlice())})
	})
	if err != nil {
		t.Fatal(err)
	}
	return pod
}
