// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/host"
)

// TestSecurityGroups opens a port between two machines by EC2's API and closes it again, while connections go on and
// processes are killed.
//
//story:about network/securitygroup network/securitygroupcontroller network/vpc
func TestSecurityGroups(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("aws"); err != nil {
		t.Fatal("there is no AWS CLI, which tools/testneeds.sh installs: nothing is tested")
	}
	i := newInstallation(t)
	i.muster("up", "--nodes", "2", "--timeout", "3m")
	i.ready()
	w := newIAM(t, i)
	g := newGroups(w)

	t.Run("groups that are there", func(t *testing.T) {
		w := w.step(t)
		shown := w.describeCluster("muster")
		if shown.ResourcesVpcConfig.ClusterSecurityGroupID != g.cluster || shown.ResourcesVpcConfig.VpcID != g.vpc {
			t.Errorf("%+v, want the group %s", shown.ResourcesVpcConfig, g.cluster)
		}
		if _, err := w.aws(w.admin, "ec2", "delete-security-group", "--group-id", g.standard); err == nil || !strings.Contains(err.Error(), "(CannotDelete)") {
			t.Errorf("the default group: %v", err)
		}
		if _, err := w.aws(w.admin, "ec2", "delete-security-group", "--group-id", g.cluster); err == nil || !strings.Contains(err.Error(), "(DependencyViolation)") {
			t.Errorf("the cluster's group: %v", err)
		}
		w.eventually("machines of one cluster reach each other", func() error { return g.open(w) })
	})
	t.Run("pods have addresses of the subnets", func(t *testing.T) { podAddresses(w.step(t), g.vpc, g.server) })
	t.Run("pods have addresses of other subnets", func(t *testing.T) { podSubnets(w.step(t), g.vpc) })
	clients, servers := g.create(w, "clients"), g.create(w, "servers")
	w.mustAWS(nil, "ec2", "modify-instance-attribute", "--instance-id", g.server.id, "--groups", servers)
	w.mustAWS(nil, "ec2", "modify-instance-attribute", "--instance-id", g.client.id, "--groups", clients)
	w.eventually("without a rule the port is closed", func() error { return g.closed(w) })

	t.Run("pods reach the API server at port 443 alone", func(t *testing.T) { apiServerAt443(w.step(t), g, clients) })

	for name, peer := range map[string]string{"group": "UserIdGroupPairs=[{GroupId=" + clients + "}]", "range": "IpRanges=[{CidrIp=172.31.0.0/16}]", "address": "IpRanges=[{CidrIp=" + g.client.address + "/32}]"} {
		t.Run("by "+name, func(t *testing.T) {
			w := w.step(t)
			rule := []string{"--group-id", servers, "--ip-permissions", fmt.Sprintf("IpProtocol=tcp,FromPort=%d,ToPort=%d,%s", storyPort, storyPort, peer)}
			began := time.Now()
			w.mustAWS(nil, append([]string{"ec2", "authorize-security-group-ingress"}, rule...)...)
			answered := time.Now()
			w.eventually("the port is open", func() error { return g.open(w) })
			t.Logf("authorize: %v, and %v until the port is open", answered.Sub(began).Round(time.Millisecond), time.Since(answered).Round(time.Millisecond))
			goes, err := g.connect(w)
			if err != nil {
				t.Fatal(err)
			}
			w.mustAWS(nil, append([]string{"ec2", "revoke-security-group-ingress"}, rule...)...)
			w.eventually("the port is closed", func() error { return g.closed(w) })
			if err := goes(); err != nil {
				t.Errorf("a connection that was open: %v", err)
			}
		})
	}
	t.Run("killed in between", func(t *testing.T) {
		w := w.step(t)
		rule := []string{"--group-id", servers, "--protocol", "tcp", "--port", fmt.Sprint(storyPort), "--source-group", clients}
		w.mustAWS(nil, append([]string{"ec2", "authorize-security-group-ingress"}, rule...)...)
		w.eventually("the port is open", func() error { return g.open(w) })
		goes, err := g.connect(w)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{g.vpc, "serve"} {
			w.kill(name)
			if err := errors.Join(goes(), g.open(w)); err != nil {
				t.Errorf("%s was killed: %v", name, err)
			}
			w.ready()
			if err := errors.Join(goes(), g.open(w)); err != nil {
				t.Errorf("%s is back: %v", name, err)
			}
		}
		w.mustAWS(nil, append([]string{"ec2", "revoke-security-group-ingress"}, rule...)...)
		w.kill("serve") // whether the rule was out of force by then or not
		w.eventually("the port is closed", func() error { return g.closed(w) })
		w.kill(g.vpc)
		if err := g.closed(w); err != nil {
			t.Error(err)
		}
		if err := goes(); err != nil {
			t.Errorf("a connection that was open: %v", err)
		}
		w.ready()
	})
	t.Run("deleted", func(t *testing.T) {
		w := w.step(t)
		if _, err := w.aws(w.admin, "ec2", "delete-security-group", "--group-id", servers); err == nil || !strings.Contains(err.Error(), "(DependencyViolation)") {
			t.Errorf("a group with a machine: %v", err)
		}
		for _, id := range []string{g.server.id, g.client.id} {
			w.mustAWS(nil, "ec2", "modify-instance-attribute", "--instance-id", id, "--groups", g.cluster)
		}
		w.eventually("machines of one cluster reach each other", func() error { return g.open(w) })
		for _, id := range []string{servers, clients} {
			w.mustAWS(nil, "ec2", "delete-security-group", "--group-id", id)
		}
		w.eventually("the groups are gone", func() error {
			if left := w.mustKubectl("--context", "muster-management", "get", "securitygroups", "-o", "name"); strings.Contains(left, servers) || strings.Contains(left, clients) {
				return fmt.Errorf("there are %s", left)
			}
			return nil
		})
	})
}

// apiServerAt443 has the cluster's group let a group of machines in at the port 443, as modules of Terraform do, which
// is all that their pods need: the Service "kubernetes" leads there, also after somebody took its endpoints away.
func apiServerAt443(w *iam, g *groups, clients string) {
	service := w.mustKubectl("--context", "muster", "get", "service", "kubernetes", "-o", "jsonpath={.spec.clusterIP}:443")
	if err := reaches(w.t.Context(), g.client.namespace, service); err == nil {
		w.t.Error("without a rule the API server is reached")
	}
	rule := []string{"--group-id", g.cluster, "--protocol", "tcp", "--port", "443", "--source-group", clients}
	w.mustAWS(nil, append([]string{"ec2", "authorize-security-group-ingress"}, rule...)...)
	w.eventually("the Service kubernetes leads to the port 443", func() error { return reaches(w.t.Context(), g.client.namespace, service) })
	endpoints := func() error {
		all, err := w.kubectl("--context", "muster", "get", "endpointslices", "-l", "kubernetes.io/service-name=kubernetes", "-o", "jsonpath={.items[*].endpoints[*].addresses[0]} {.items[*].ports[*].port}")
		if err == nil && (len(strings.Fields(all)) != 3 || !strings.HasSuffix(all, " 443") || !strings.Contains(all, w.installation.endpoint())) {
			err = fmt.Errorf("the endpoints are %s", all)
		}
		return err
	}
	if err := endpoints(); err != nil {
		w.t.Error(err)
	}
	w.mustKubectl("--context", "muster", "delete", "endpoints,endpointslices", "kubernetes")
	w.eventually("the endpoints come back", endpoints)
	w.eventually("the Service kubernetes leads to the port 443 again", func() error { return reaches(w.t.Context(), g.client.namespace, service) })
	// Its port of the host is not open, to the members of its group either.
	own, _ := w.ports()
	w.mustAWS(nil, "ec2", "modify-instance-attribute", "--instance-id", g.client.id, "--groups", g.cluster)
	w.eventually("a member of the cluster's group is told that nobody listens", func() error {
		err := reaches(w.t.Context(), g.client.namespace, fmt.Sprintf("%s:%d", w.installation.endpoint(), own.Published))
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return fmt.Errorf("it is told: %w", err)
		}
		return nil
	})
	w.mustAWS(nil, "ec2", "modify-instance-attribute", "--instance-id", g.client.id, "--groups", clients)
	w.mustAWS(nil, append([]string{"ec2", "revoke-security-group-ingress"}, rule...)...)
}

// storyPort is listened on by the server.
const storyPort = 4000

// groups are two machines, a client and a server that listens, and the existing groups.
type groups struct {
	vpc, cluster, standard string
	client, server         member
}

type member struct {
	id, address string
	namespace   *os.File
}

func newGroups(w *iam) *groups {
	w.t.Helper()
	g := &groups{cluster: w.mustKubectl("--context", "muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.clusterSecurityGroupID}")}
	var found struct {
		SecurityGroups []struct{ GroupID, GroupName, VpcID string }
	}
	w.mustAWS(&found, "ec2", "describe-security-groups")
	for _, one := range found.SecurityGroups {
		if g.vpc = one.VpcID; one.GroupName == "default" {
			g.standard = one.GroupID
		}
	}
	namespaces := w.namespacesOf("muster")
	var list struct {
		Reservations []struct {
			Instances []struct{ InstanceID, PrivateIPAddress string }
		}
	}
	w.mustAWS(&list, "ec2", "describe-instances")
	for _, r := range list.Reservations {
		for _, one := range r.Instances {
			m := member{one.InstanceID, one.PrivateIPAddress, namespaces[one.PrivateIPAddress]}
			if m.address == firstAddress {
				g.client = m
			} else {
				g.server = m
			}
		}
	}
	if g.client.namespace == nil || g.server.namespace == nil || g.standard == "" || g.cluster == "" {
		w.t.Fatalf("%+v", g)
	}
	g.listen(w)
	return g
}

// listen has the server echo what it is sent, until the test ends.
func (g *groups) listen(w *iam) {
	w.t.Helper()
	var listener net.Listener
	err := host.InNetwork(g.server.namespace, func() (err error) {
		listener, err = new(net.ListenConfig).Listen(w.t.Context(), "tcp4", g.address())
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _, _ = io.Copy(connection, connection) }()
		}
	}()
}

func (g *groups) address() string { return fmt.Sprintf("%s:%d", g.server.address, storyPort) }

// create makes a group by EC2's API.
func (g *groups) create(w *iam, name string) string {
	w.t.Helper()
	var made struct{ GroupID string }
	w.mustAWS(&made, "ec2", "create-security-group", "--group-name", name, "--description", name, "--vpc-id", g.vpc)
	return made.GroupID
}

func (g *groups) dial(w *iam) (connection net.Conn, err error) {
	err = host.InNetwork(g.client.namespace, func() (err error) {
		dialer := net.Dialer{Timeout: 700 * time.Millisecond, FallbackDelay: -1}
		connection, err = dialer.DialContext(w.t.Context(), "tcp4", g.address())
		return err
	})
	return connection, err
}

func (g *groups) open(w *iam) error {
	connection, err := g.dial(w)
	if err == nil {
		_ = connection.Close()
	}
	return err
}

func (g *groups) closed(w *iam) error {
	if g.open(w) == nil {
		return errors.New("the port is open")
	}
	return nil
}

// connect opens a connection, and returns what checks that it goes on.
func (g *groups) connect(w *iam) (goes func() error, err error) {
	connection, err := g.dial(w)
	if err != nil {
		return nil, err
	}
	w.t.Cleanup(func() { _ = connection.Close() })
	reader := bufio.NewReader(connection)
	return func() error {
		if err := connection.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
			return err
		}
		if _, err := io.WriteString(connection, "hello\n"); err != nil {
			return err
		}
		_, err := reader.ReadString('\n')
		return err
	}, nil
}
