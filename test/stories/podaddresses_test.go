// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/host"
)

// seen are a pod on each of two nodes, and a Service in front of the second one. The test listens there.
const seen = `{apiVersion: v1, kind: Pod, metadata: {name: seen-client}, spec: {nodeName: %[1]s, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: seen-server, labels: {app: seen}}, spec: {nodeName: %[2]s, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: seen}, spec: {selector: {app: seen}, ports: [{port: 80, targetPort: 9091}]}}
`

// smallGroup is a node group in a subnet that has addresses for the pods of one machine.
const smallGroup = `{apiVersion: muster.dev/v1alpha1, kind: NodeGroup, metadata: {name: small, namespace: muster}, spec: {name: small, instanceTypes: [t3.medium], subnetIDs: [%s], scalingConfig: {desiredSize: %d}}}
`

// podAddresses shows that pods have addresses of their machines' subnets, by which everybody in the VPC knows them, and
// what becomes of a subnet that has too few.
func podAddresses(w *iam, vpcID string, server member) {
	t := w.t
	nodes := map[string]string{} // by address
	for line := range strings.SplitSeq(w.mustKubectl("get", "nodes", "-o", `jsonpath={range .items[*]}{.status.addresses[?(@.type=="InternalIP")].address} {.metadata.name} {.spec.podCIDR}{"\n"}{end}`), "\n") {
		words := strings.Fields(line)
		if len(words) != 3 {
			t.Fatalf("a node is %q", line)
		}
		nodes[words[0]] = words[1]
		subnet := netip.PrefixFrom(netip.MustParseAddr(words[0]), 20).Masked()
		if pods := netip.MustParsePrefix(words[2]); pods.Bits() != 25 || !subnet.Contains(pods.Addr()) {
			t.Errorf("the node at %s has %s for pods, want a /25 of %s", words[0], pods, subnet)
		}
		if machine := w.mustKubectl("--context=muster-management", "get", "machines", "-o", fmt.Sprintf(`jsonpath={.items[?(@.status.nodeName==%q)].status.podCIDR}`, words[1])); machine != words[2] {
			t.Errorf("the machine of %s has %q for pods, its Node %s", words[1], machine, words[2])
		}
	}
	if got := w.mustKubectl("--context=muster-management", "-n", "muster", "get", "cluster", "muster", "-o", "jsonpath={.status.podCIDR}"); got != "172.31.0.0/16" {
		t.Errorf("the cluster says %q", got)
	}
	w.apply(fmt.Sprintf(seen, nodes[firstAddress], nodes[server.address]))
	w.mustKubectl("wait", "--for=condition=Ready", "pod/seen-client", "pod/seen-server", "--timeout=60s")
	ofPod := func(name string) string {
		return w.mustKubectl("get", "pod", name, "-o", "jsonpath={.status.podIP}")
	}
	client, target := ofPod("seen-client"), ofPod("seen-server")
	inPod, err := networkOfPod("seen-server")
	if err != nil {
		t.Fatal(err)
	}
	defer inPod.Close()
	service := w.mustKubectl("get", "service", "seen", "-o", "jsonpath={.spec.clusterIP}")
	for _, way := range []struct {
		what, address, url string
		namespace          *os.File
	}{
		{"a pod", target + ":9091", "http://" + target + ":9091/", inPod},
		{"a pod by its Service", target + ":9091", "http://" + service + "/", inPod},
		{"a machine", server.address + ":9092", "http://" + server.address + ":9092/", server.namespace},
	} {
		from, err := whoAsks(w, way.namespace, way.address, func() {
			_, _ = w.kubectl("exec", "seen-client", "--", "/workload", "fetch", way.url) // the listener answers nothing
		})
		if err != nil || from != client {
			t.Errorf("%s is asked by %s (%v), want %s, the pod's own address", way.what, from, err, client)
		}
	}
	if out, err := w.kubectl("exec", "seen-client", "--", "/workload", "fetch", "http://"+target+":8080/"); err != nil || strings.TrimSpace(out) != "seen-server" {
		t.Errorf("from pod to pod: %q, %v", out, err)
	}
	w.mustKubectl("delete", "pod,service", "seen-client", "seen-server", "seen", "--ignore-not-found", "--wait=false")
	smallSubnet(w, vpcID)
}

// smallSubnet fills a subnet of 64 addresses with the 32 for the pods of one machine.
func smallSubnet(w *iam, vpcID string) {
	t := w.t
	var made struct{ Subnet struct{ SubnetID string } }
	w.mustAWS(&made, "ec2", "create-subnet", "--vpc-id", vpcID, "--cidr-block", "172.31.48.0/26", "--availability-zone", "us-east-1a")
	id := made.Subnet.SubnetID
	w.eventually("the subnet is Ready", func() error {
		_, err := w.kubectl("--context=muster-management", "wait", "subnet/"+id, "--for=condition=Ready", "--timeout=1s")
		return err
	})
	free := func(want int) error {
		var found struct {
			Subnets []struct{ AvailableIPAddressCount int }
		}
		w.mustAWS(&found, "ec2", "describe-subnets", "--subnet-ids", id)
		if len(found.Subnets) != 1 || found.Subnets[0].AvailableIPAddressCount != want {
			return fmt.Errorf("%+v are free, want %d", found.Subnets, want)
		}
		return nil
	}
	if err := free(59); err != nil {
		t.Error(err)
	}
	machines := func() string {
		return w.mustKubectl("--context=muster-management", "get", "machines", "-o", fmt.Sprintf(`jsonpath={range .items[?(@.spec.subnetID==%q)]}{.metadata.name} {.status.podCIDR} {.status.phase}{end}`, id))
	}
	becomes := func(but string) string {
		name := ""
		w.eventually("the machine of the small subnet is Ready", func() error {
			words := strings.Fields(machines())
			if len(words) != 3 || words[0] == but || words[1] != "172.31.48.32/27" || words[2] != "Ready" {
				return fmt.Errorf("machines there: %q", words)
			}
			name = words[0]
			return nil
		})
		return name
	}
	w.apply(fmt.Sprintf(smallGroup, id, 1), "--context=muster-management")
	first := becomes("")
	if err := free(27); err != nil { // 59 without its own address and 31: the last one of both ranges is nobody's
		t.Error(err)
	}
	var instances struct {
		Reservations []struct {
			Instances []struct {
				NetworkInterfaces []struct {
					Ipv4Prefixes []struct{ Ipv4Prefix string }
				}
			}
		}
	}
	w.mustAWS(&instances, "ec2", "describe-instances", "--instance-ids", first)
	if got := fmt.Sprintf("%+v", instances); !strings.Contains(got, "Ipv4Prefix:172.31.48.32/27") {
		t.Errorf("the instance is %s", got)
	}

	w.apply(fmt.Sprintf(smallGroup, id, 2), "--context=muster-management")
	w.eventually("a second machine is refused", func() error {
		got := w.mustKubectl("--context=muster-management", "-n", "muster", "get", "nodegroup", "small", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
		if !strings.HasPrefix(got, "InsufficientFreeAddresses: M-CAP-68: 1 more machines") || !strings.Contains(got, "no /27 for the addresses of 17 pods") {
			return errors.New(got)
		}
		return nil
	})
	w.eventually("an Event says so", func() error {
		if got := w.mustKubectl("--context=muster-management", "get", "events", "-A", "-o", `jsonpath={.items[?(@.reason=="InsufficientFreeAddresses")].regarding.name}{.items[?(@.reason=="InsufficientFreeAddresses")].involvedObject.name}`); !strings.Contains(got, "small") {
			return fmt.Errorf("events: %q", got)
		}
		return nil
	})
	if words := strings.Fields(machines()); len(words) != 3 {
		t.Errorf("machines there: %q", words)
	}

	// Its range can be had again, and is by the machine that takes its place.
	w.mustKubectl("--context=muster-management", "delete", "machine", first, "--timeout=60s")
	becomes(first)
	w.mustKubectl("--context=muster-management", "-n", "muster", "delete", "nodegroup", "small", "--timeout=120s")
	w.eventually("all is free again", func() error { return free(59) })
	w.mustAWS(nil, "ec2", "delete-subnet", "--subnet-id", id)
}

// networkOfPod opens the network namespace of a pod by the host name that its program has in its environment.
func networkOfPod(name string) (*os.File, error) {
	all, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	for _, path := range all {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(append([]byte{0}, environ...), []byte("\x00HOSTNAME="+name+"\x00")) {
			continue
		}
		return os.Open(filepath.Join(filepath.Dir(path), "ns/net"))
	}
	return nil, fmt.Errorf("no process of pod %s is found", name)
}

// whoAsks listens in a namespace and returns the address of the first one that connects. It has ask called until
// somebody does: kube-proxy may not have heard of a Service yet, or of the pod behind it.
func whoAsks(w *iam, namespace *os.File, address string, ask func()) (string, error) {
	var listener *net.TCPListener
	err := host.InNetwork(namespace, func() error {
		all, err := new(net.ListenConfig).Listen(w.t.Context(), "tcp4", address)
		if err == nil {
			listener = all.(*net.TCPListener)
		}
		return err
	})
	if err != nil {
		return "", err
	}
	defer listener.Close()
	heard := make(chan struct{})
	defer close(heard)
	go func() {
		for {
			ask()
			select {
			case <-heard:
				return
			case <-time.After(200 * time.Millisecond):
			}
		}
	}()
	if err := listener.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	connection, err := listener.Accept()
	if err != nil {
		return "", err
	}
	defer connection.Close()
	return netip.MustParseAddrPort(connection.RemoteAddr().String()).Addr().String(), nil
}
