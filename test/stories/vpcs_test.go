// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"muster.dev/muster/internal/network/vpc"
	"muster.dev/muster/internal/network/vpc/vpctest"
	"muster.dev/muster/internal/platform/host"
)

// anotherVPC has the range of the default VPC, and a cluster in it.
const anotherVPC = `{apiVersion: muster.dev/v1alpha1, kind: VPC, metadata: {name: vpc-0123456789abcdef0}, spec: {cidrBlock: 172.31.0.0/16}}
---
{apiVersion: muster.dev/v1alpha1, kind: Subnet, metadata: {name: subnet-0123456789abcdef0}, spec: {vpcID: vpc-0123456789abcdef0, cidrBlock: 172.31.0.0/20, availabilityZone: us-east-1a}}
---
{apiVersion: muster.dev/v1alpha1, kind: Subnet, metadata: {name: subnet-0123456789abcdef1}, spec: {vpcID: vpc-0123456789abcdef0, cidrBlock: 172.31.16.0/20, availabilityZone: us-east-1b}}
---
{apiVersion: muster.dev/v1alpha1, kind: Subnet, metadata: {name: subnet-0123456789abcdef2}, spec: {vpcID: vpc-0123456789abcdef0, cidrBlock: 172.31.32.0/20, availabilityZone: us-east-1c}}
`

const clusterInAnotherVPC = `{apiVersion: v1, kind: Namespace, metadata: {name: blue}}
---
{apiVersion: muster.dev/v1alpha1, kind: Cluster, metadata: {name: blue, namespace: blue}, spec: {name: blue, network: {subnetIDs: [subnet-0123456789abcdef1, subnet-0123456789abcdef0, subnet-0123456789abcdef2]}}}
---
{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: default, namespace: blue}, spec: {name: default, scalingConfig: {desiredSize: 3}}}
`

// The machines of each cluster: their addresses are the same in both VPCs. The third one of each forges; no endpoint of
// an API server is in its subnet.
const (
	firstAddress, secondAddress, forgersAddress = "172.31.0.5", "172.31.16.5", "172.31.32.4"
	// nobodys is an address of both VPCs that no machine has.
	nobodys = "172.31.16.99"
)

// TestTwoVPCs is the tale of two VPCs with the same range, and a cluster in each: their machines have the same
// addresses, and reach nothing of each other.
//
//story:about network/vpc machine/vpccontroller node/imds
func TestTwoVPCs(t *testing.T) {
	i := newInstallation(t)
	i.muster("up", "--nodes", "3", "--timeout", "3m")
	i.mustKubectl("--context", "muster", "-n", "kube-system", "rollout", "status", "deployment/coredns", "--timeout=120s")
	before := takeSnapshot(t, i.dir) // with all that the first cluster runs
	i.apply(anotherVPC, "--context=muster-management")
	i.mustKubectl("--context=muster-management", "wait", "vpc/vpc-0123456789abcdef0", "subnet/subnet-0123456789abcdef0", "subnet/subnet-0123456789abcdef1", "subnet/subnet-0123456789abcdef2", "--for=condition=Ready", "--timeout=30s")
	i.apply(clusterInAnotherVPC, "--context=muster-management")
	i.eventually("the service has heard of the second cluster", func() error {
		status, err := i.status()
		if err == nil && len(status.Clusters) != 2 {
			err = fmt.Errorf("it has %d clusters", len(status.Clusters))
		}
		return err
	})
	i.ready()

	machines := map[string]map[string]*os.File{} // by cluster and address
	for _, cluster := range []string{"muster", "blue"} {
		machines[cluster] = i.namespacesOf(cluster)
		if got := slices.Sorted(maps.Keys(machines[cluster])); !slices.Equal(got, []string{firstAddress, secondAddress, forgersAddress}) {
			t.Fatalf("machines of %s have %v", cluster, got)
		}
	}
	heard, overheard := map[string]<-chan string{}, map[string]<-chan string{}
	for cluster, own := range machines {
		heard[cluster] = hears(t, own[secondAddress], secondAddress+":4000")
		overheard[cluster] = hears(t, own[forgersAddress], "0.0.0.0:4000")
		takes(t, own[forgersAddress], secondAddress)
		forges(t, own[forgersAddress], cluster)
	}
	for cluster, own := range machines {
		for _, source := range []string{nobodys, secondAddress, "172.31.0.2", "10.250.0.1"} { // not its own
			sends(t, own[firstAddress], source, secondAddress+":4000", "spoofed by "+cluster+" as "+source)
		}
		sends(t, own[firstAddress], firstAddress, secondAddress+":4000", cluster)
	}
	for cluster, messages := range heard {
		got := map[string]int{}
		for patience := time.After(10 * time.Second); got[cluster]+got["forger of "+cluster] < 2; {
			select {
			case message := <-messages:
				got[message]++
				continue
			case <-patience:
			}
			break
		}
		for quiet := time.After(time.Second); ; {
			select {
			case message := <-messages:
				got[message]++
				continue
			case message := <-overheard[cluster]:
				t.Errorf("the forger of %s overheard %q", cluster, message)
				continue
			case <-quiet:
			}
			break
		}
		if want := map[string]int{cluster: 1, "forger of " + cluster: 1}; !maps.Equal(got, want) {
			t.Errorf("the machine of %s heard %v, want %v", cluster, got, want)
		}
	}

	i.muster("delete", "cluster", "blue", "--cascade", "--timeout", "3m")
	i.mustKubectl("--context=muster-management", "delete", "subnet", "subnet-0123456789abcdef0", "subnet-0123456789abcdef1", "subnet-0123456789abcdef2", "--timeout=30s")
	i.mustKubectl("--context=muster-management", "delete", "vpc", "vpc-0123456789abcdef0", "--timeout=30s")
	before.expectSame(t, i.dir)
	i.ready()
}

// namespacesOf opens the network namespaces of a cluster's machines, by address.
func (i *installation) namespacesOf(cluster string) map[string]*os.File {
	i.t.Helper()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ ClusterName, SubnetID string }
			Status   struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	if err := json.Unmarshal([]byte(i.mustKubectl("--context=muster-management", "get", "machines", "-o", "json")), &list); err != nil {
		i.t.Fatal(err)
	}
	running := i.processes()
	found := map[string]*os.File{}
	for _, m := range list.Items {
		if m.Spec.ClusterName != cluster {
			continue
		}
		namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", running["machine/"+m.Metadata.Name].PID))
		if err != nil {
			i.t.Fatal(err)
		}
		i.t.Cleanup(func() { _ = namespace.Close() })
		for _, a := range m.Status.Addresses {
			if a.Type == "InternalIP" {
				found[a.Address] = namespace
			}
		}
	}
	return found
}

// hears listens for datagrams in a namespace.
func hears(t *testing.T, namespace *os.File, address string) <-chan string {
	t.Helper()
	var socket net.PacketConn
	err := host.InNetwork(namespace, func() (err error) {
		socket, err = new(net.ListenConfig).ListenPacket(t.Context(), "udp4", address)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = socket.Close() })
	heard := make(chan string, 64)
	go func() {
		for {
			raw := make([]byte, 128)
			n, _, err := socket.ReadFrom(raw)
			if err != nil {
				return
			}
			heard <- string(raw[:n])
		}
	}()
	return heard
}

// takes gives a machine's link the address of another machine, as root on a machine can.
func takes(t *testing.T, namespace *os.File, address string) {
	t.Helper()
	err := host.InNetwork(namespace, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		stolen := &netlink.Addr{IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(32, 32)}}
		return netlink.AddrAdd(link, stolen)
	})
	if err != nil {
		t.Fatalf("taking %s: %v", address, err)
	}
}

// forges has a machine announce by ARP that the second machine and the router are it, then send frames to the second
// machine by hardware addresses and addresses that are not its own, and last an honest one.
func forges(t *testing.T, namespace *os.File, cluster string) {
	t.Helper()
	second, forger := netip.MustParseAddr(secondAddress), netip.MustParseAddr(forgersAddress)
	first, to := netip.MustParseAddr(firstAddress), netip.AddrPortFrom(second, 4000)
	err := host.InNetwork(namespace, func() error {
		link, err := netlink.LinkByName("eth0")
		if err != nil {
			return err
		}
		own, router := link.Attrs().HardwareAddr, net.HardwareAddr(nil)
		neighbours, err := netlink.NeighList(link.Attrs().Index, netlink.FAMILY_V4)
		for _, n := range neighbours {
			if n.IP.String() == "172.31.32.1" {
				router = n.HardwareAddr
			}
		}
		if err != nil || router == nil {
			return fmt.Errorf("no router among the neighbours %v: %w", neighbours, err)
		}
		socket, err := unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
		if err != nil {
			return err
		}
		defer func() { _ = unix.Close(socket) }()
		frames := [][]byte{vpctest.Frame(router, own, vpctest.IPv4, vpctest.Datagram(forger, to, "forger of "+cluster))}
		for range 5 {
			for _, stolen := range []netip.Addr{second, first, netip.MustParseAddr("172.31.32.1"), netip.MustParseAddr("172.31.16.1")} {
				frames = append(frames, vpctest.Frame(vpctest.Everybody, own, vpctest.ARP, vpctest.Announcement(own, stolen)))
			}
		}
		for _, source := range []netip.Addr{first, second, forger} {
			for _, hardware := range []net.HardwareAddr{own, vpc.MAC(first), vpc.MAC(second), router} {
				for _, destination := range []net.HardwareAddr{router, vpc.MAC(second), vpctest.Everybody} {
					if source != forger || destination.String() != router.String() { // its own address alone is what it is known by
						frames = append(frames, vpctest.Frame(destination, hardware, vpctest.IPv4, vpctest.Datagram(source, to, fmt.Sprintf("forged by %s as %s, %s to %s", cluster, source, hardware, destination))))
					}
				}
			}
		}
		for _, frame := range frames {
			if err := unix.Sendto(socket, frame, 0, &unix.SockaddrLinklayer{Ifindex: link.Attrs().Index, Halen: 6}); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("forging in %s: %v", cluster, err)
	}
}

// sends writes a datagram from a namespace by any source address, as root on a machine can.
func sends(t *testing.T, namespace *os.File, source, to, message string) {
	t.Helper()
	anySource := net.Dialer{
		LocalAddr: net.UDPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(source), 0)),
		ControlContext: func(_ context.Context, _, _ string, raw syscall.RawConn) (err error) {
			if failed := raw.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_TRANSPARENT, 1) }); failed != nil {
				return failed
			}
			return err
		},
	}
	err := host.InNetwork(namespace, func() error {
		connection, err := anySource.DialContext(t.Context(), "udp4", to)
		if err != nil {
			return err
		}
		_, err = strings.NewReader(message).WriteTo(connection)
		_ = connection.Close()
		return err
	})
	if err != nil {
		t.Errorf("sending as %s: %v", source, err)
	}
}
