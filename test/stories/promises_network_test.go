// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/host"
	"muster.dev/muster/test/promise"
)

// network opens and closes a port between two machines, the way out of their VPC, and a subnet.
func (w *promises) network() {
	client, server := w.machines[0].member, w.machines[1].member
	g := &groups{vpc: w.vpcProcess(), client: client, server: server}
	g.listen(w.iam)
	groupOf := func(name string) string {
		return field(w.aws.must(awsForm("ec2", "CreateSecurityGroup", "GroupName", name, "GroupDescription", name, "VpcId", g.vpc)), "groupId")
	}
	clients, servers := groupOf("clients"), groupOf("servers")
	w.aws.must(awsForm("ec2", "ModifyInstanceAttribute", "InstanceId", server.id, "GroupId.1", servers))
	w.aws.must(awsForm("ec2", "ModifyInstanceAttribute", "InstanceId", client.id, "GroupId.1", clients))
	w.eventually("without a rule the port is closed", func() error { return g.closed(w.iam) })
	rule := []string{
		"GroupId", servers, "IpPermissions.1.IpProtocol", "tcp", "IpPermissions.1.FromPort", fmt.Sprint(storyPort), "IpPermissions.1.ToPort", fmt.Sprint(storyPort),
		"IpPermissions.1.Groups.1.GroupId", clients,
	}
	for range promisedTimes {
		w.aws.must(awsForm("ec2", "AuthorizeSecurityGroupIngress", rule...))
		w.within(promise.PortOpened, "a port is opened", func() error { return dialled(w.t.Context(), client.namespace, g.address(), 50*time.Millisecond) })
		w.aws.must(awsForm("ec2", "RevokeSecurityGroupIngress", rule...))
		w.closedSince(g)
	}
	own := w.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.clusterSecurityGroupID}") // both were in it
	for _, m := range []member{server, client} {
		w.aws.must(awsForm("ec2", "ModifyInstanceAttribute", "InstanceId", m.id, "GroupId.1", own))
	}
	w.wayOut()
	w.subnets(g.vpc)
}

// closedSince notes when a port was closed: at the beginning of the first attempt that was dropped. A second one waits
// longer, as a single one may have been late.
func (w *promises) closedSince(g *groups) {
	w.t.Helper()
	began := time.Now()
	for time.Since(began) < patience {
		asked := time.Now()
		if dialled(w.t.Context(), g.client.namespace, g.address(), 50*time.Millisecond) != nil && g.closed(w.iam) == nil {
			w.tally.add(promise.PortClosed, "a port is closed", asked.Sub(began))
			return
		}
	}
	w.t.Fatalf("the port is open after %s", patience)
}

// dialled connects from a namespace.
func dialled(ctx context.Context, from *os.File, address string, timeout time.Duration) error {
	return host.InNetwork(from, func() error {
		connection, err := (&net.Dialer{Timeout: timeout, FallbackDelay: -1}).DialContext(ctx, "tcp4", address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

// The host's way to a network of the test's own.
const promisedLink = "ms-promise"

// serverFarAway listens behind a link of the host, which goes with the test.
func (w *promises) serverFarAway() (address string) {
	w.t.Helper()
	pid, far := holdNamespaces(w.tally.t, syscall.CLONE_NEWNET)
	for _, line := range []string{
		fmt.Sprintf("ip link add %s type veth peer name away netns %d", promisedLink, pid), "ip addr add " + farHostAddress + "/30 dev " + promisedLink, "ip link set " + promisedLink + " up",
		fmt.Sprintf("nsenter --target=%d --net -- ip addr add %s/30 dev away", pid, farAddress), fmt.Sprintf("nsenter --target=%d --net -- ip link set away up", pid),
	} {
		words := strings.Fields(line)
		if out, err := exec.CommandContext(w.t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			w.t.Fatalf("%s: %v\n%s", line, err, out)
		}
	}
	w.tally.t.Cleanup(func() { _ = exec.Command("ip", "link", "delete", promisedLink).Run() }) // a namespace may outlive its last process for a moment
	var listener net.Listener
	if err := host.InNetwork(far, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(w.tally.t.Context(), "tcp4", farAddress+":80")
		return err
	}); err != nil {
		w.t.Fatal(err)
	}
	w.tally.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		var open []net.Conn // the server ends none before the story does: the way out has to
		for {
			connection, err := listener.Accept()
			if err != nil {
				break
			}
			open = append(open, connection)
		}
		for _, connection := range open {
			_ = connection.Close()
		}
	}()
	return farAddress + ":80"
}

// wayOut allows one address outside and denies it again. An open connection is reset with the denial.
func (w *promises) wayOut() {
	far := w.serverFarAway()
	machine := w.machines[0]
	for range promisedTimes {
		w.setWayOut(true)
		w.within(promise.WayOutChanged, "an address is allowed", func() error { return w.reaches(machine, far) })
		var open net.Conn
		if err := host.InNetwork(machine.namespace, func() (err error) {
			open, err = (&net.Dialer{Timeout: 5 * time.Second, FallbackDelay: -1}).DialContext(w.t.Context(), "tcp4", far)
			return err
		}); err != nil {
			w.t.Fatal(err)
		}
		w.setWayOut(false)
		began := time.Now()
		_ = open.SetReadDeadline(began.Add(10 * time.Second))
		_, err := open.Read(make([]byte, 1))
		_ = open.Close()
		if !errors.Is(err, syscall.ECONNRESET) {
			w.t.Errorf("a connection that is not allowed any more is not reset: %v", err)
		}
		w.withinOf(began, promise.WayOutChanged, 10*time.Millisecond, "an address is denied", func() error {
			if err := w.reaches(machine, far); !errors.Is(err, syscall.ECONNREFUSED) {
				return fmt.Errorf("it is not refused, but: %v", err) //nolint:errorlint // nil, too
			}
			return nil
		})
	}
	w.setWayOut(true) // for the kills
	w.eventually("the address is allowed", func() error { return w.reaches(machine, far) })
}

// reaches tries one packet: the kernel would send a lost one again after a second, which is not the time of the way
// out.
func (w *promises) reaches(machine promisedMachine, address string) error {
	return dialled(w.t.Context(), machine.namespace, address, 300*time.Millisecond)
}

func (w *promises) setWayOut(allowed bool) {
	w.t.Helper()
	ranges := ""
	if allowed {
		ranges = `"` + farAddress + `/32"`
	}
	patch := fmt.Sprintf(`{"spec":{"egress":{"mode":"NAT","deniedRanges":["0.0.0.0/0"],"allowedRanges":[%s]}}}`, ranges)
	if _, err := w.management.Resource(v1alpha1.GroupVersion.WithResource("vpcs")).Patch(w.t.Context(), w.vpcProcess(), types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// subnets makes a subnet and deletes it again: the router's address in it comes and goes.
func (w *promises) subnets(vpc string) {
	network, err := os.Open(filepath.Join(w.dir.VPCs(), vpc, "netns")) // held by this mount, whichever process runs
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = network.Close() })
	block := netip.MustParsePrefix("172.31.240.0/28")
	there := func() (found bool, err error) {
		err = host.InNetwork(network, func() error {
			all, err := net.InterfaceAddrs()
			for _, one := range all {
				if prefix, err := netip.ParsePrefix(one.String()); err == nil && block.Contains(prefix.Addr()) {
					found = true
				}
			}
			return err
		})
		return found, err
	}
	for range promisedTimes {
		id := field(w.aws.must(awsForm("ec2", "CreateSubnet", "VpcId", vpc, "CidrBlock", block.String())), "subnetId")
		w.eventually("the subnet has a router", func() error {
			found, err := there()
			if err == nil && !found {
				err = errors.New("no address of it")
			}
			return err
		})
		w.aws.must(awsForm("ec2", "DeleteSubnet", "SubnetId", id))
		w.within(promise.SubnetDeleted, "a subnet is deleted", func() error {
			found, err := there()
			if err == nil && found {
				err = errors.New("its router is there")
			}
			return err
		})
	}
}
