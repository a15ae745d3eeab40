// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster.dev/muster/internal/platform/host"
)

// apart is a cluster in two zones whose pods have subnets of their own, with a machine of 17 pods in each.
const apart = `apiVersion: muster.dev/v1alpha1
kind: Cluster
metadata: {name: apart}
spec: {network: {subnetIDs: [%s, %s], podSubnetIDs: [%s, %s]}}
---
apiVersion: muster.dev/v1alpha1
kind: NodeGroup
metadata: {name: workers}
spec: {instanceTypes: [t3.medium], scalingConfig: {desiredSize: 2}}
`

// podsApart are a pod on each of its nodes, and one in the network of the second one.
const podsApart = `{apiVersion: v1, kind: Pod, metadata: {name: apart-client}, spec: {nodeName: %[1]s, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: apart-server}, spec: {nodeName: %[2]s, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: apart-host}, spec: {nodeName: %[2]s, hostNetwork: true, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve, -listen, ":9093"]}]}}
`

// podSubnets shows a cluster whose pods have addresses of other subnets than its machines: who reaches them, and what
// becomes of one that is full.
func podSubnets(w *iam, vpcID string) {
	t := w.t
	subnetOf := func(cidr string) string {
		var found struct{ Subnets []struct{ SubnetID string } }
		w.mustAWS(&found, "ec2", "describe-subnets", "--filters", "Name=vpc-id,Values="+vpcID, "Name=cidr-block,Values="+cidr)
		if len(found.Subnets) != 1 {
			t.Fatalf("subnets with %s: %+v", cidr, found.Subnets)
		}
		return found.Subnets[0].SubnetID
	}
	var ids []string
	for zone, cidr := range []string{"172.31.64.0/26", "172.31.65.0/26"} {
		w.mustAWS(nil, "ec2", "create-subnet", "--vpc-id", vpcID, "--cidr-block", cidr, "--availability-zone", "us-east-1"+string(rune('a'+zone)))
		ids = append(ids, subnetOf(cidr))
		w.mustKubectl("--context=muster-management", "wait", "subnet/"+ids[zone], "--for=condition=Ready", "--timeout=30s")
	}
	file := filepath.Join(t.TempDir(), "apart.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, apart, subnetOf("172.31.0.0/20"), subnetOf("172.31.16.0/20"), ids[0], ids[1]), 0o600); err != nil {
		t.Fatal(err)
	}
	w.muster("create", "cluster", "apart", "--file", file, "--wait", "--timeout", "4m")

	// Each machine has its own address of its own subnet, and the only range of the one for pods in its zone.
	nodes := map[string]string{} // by the subnet of the address
	w.eventually("both nodes have a range for pods", func() error {
		clear(nodes)
		for line := range strings.SplitSeq(w.mustKubectl("--context=apart", "get", "nodes", "-o", `jsonpath={range .items[*]}{.status.addresses[?(@.type=="InternalIP")].address} {.metadata.name} {.spec.podCIDR}{"\n"}{end}`), "\n") {
			words := strings.Fields(line)
			if len(words) != 3 {
				return fmt.Errorf("a node is %q", line)
			}
			own := netip.PrefixFrom(netip.MustParseAddr(words[0]), 20).Masked().String()
			nodes[own] = words[1]
			if want := map[string]string{"172.31.0.0/20": "172.31.64.32/27", "172.31.16.0/20": "172.31.65.32/27"}[own]; words[2] != want {
				return fmt.Errorf("the node at %s has %s for pods, want %q", words[0], words[2], want)
			}
		}
		if len(nodes) != 2 {
			return fmt.Errorf("nodes in %d subnets", len(nodes))
		}
		return nil
	})
	w.apply(fmt.Sprintf(podsApart, nodes["172.31.0.0/20"], nodes["172.31.16.0/20"]), "--context=apart")
	w.mustKubectl("--context=apart", "wait", "--for=condition=Ready", "pod/apart-client", "pod/apart-server", "pod/apart-host", "--timeout=90s")
	ofPod := func(name string) netip.Addr {
		return netip.MustParseAddr(w.mustKubectl("--context=apart", "get", "pod", name, "-o", "jsonpath={.status.podIP}"))
	}
	client, server, onHost := ofPod("apart-client"), ofPod("apart-server"), ofPod("apart-host")
	if !netip.MustParsePrefix("172.31.64.32/27").Contains(client) || !netip.MustParsePrefix("172.31.65.32/27").Contains(server) || !netip.MustParsePrefix("172.31.16.0/20").Contains(onHost) {
		t.Errorf("pods have %s and %s, one in its machine's network %s", client, server, onHost)
	}
	podsReached(w, client, server, onHost)

	free := func(id string) int {
		var found struct {
			Subnets []struct{ AvailableIPAddressCount int }
		}
		w.mustAWS(&found, "ec2", "describe-subnets", "--subnet-ids", id)
		return found.Subnets[0].AvailableIPAddressCount
	}
	if a, b := free(ids[0]), free(ids[1]); a != 28 || b != 28 { // 59 without the 31 of a range that ends with the subnet
		t.Errorf("%d and %d addresses are free", a, b)
	}
	w.mustKubectl("--context=muster-management", "-n", "apart", "patch", "nodegroup", "workers", "--type=merge", "-p", `{"spec":{"scalingConfig":{"desiredSize":3}}}`)
	w.eventually("a third machine is refused", func() error {
		got := w.mustKubectl("--context=muster-management", "-n", "apart", "get", "nodegroup", "workers", "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].reason}: {.status.conditions[?(@.type=="Ready")].message}`)
		if !strings.HasPrefix(got, "InsufficientFreeAddresses: M-CAP-68: 1 more machines") || !strings.Contains(got, "no /27 for the addresses of 17 pods in "+ids[0]+", "+ids[1]) {
			return errors.New(got)
		}
		return nil
	})
	if _, err := w.aws(w.admin, "ec2", "delete-subnet", "--subnet-id", ids[0]); err == nil || !strings.Contains(err.Error(), "(DependencyViolation)") || !strings.Contains(err.Error(), "cluster apart for its pods") {
		t.Errorf("a subnet for pods is deleted: %v", err)
	}

	w.muster("delete", "cluster", "apart", "--cascade", "--timeout", "3m")
	for _, id := range ids {
		w.eventually("all is free without the cluster", func() error {
			if n := free(id); n != 59 {
				return fmt.Errorf("%d addresses are free", n)
			}
			_, err := w.aws(w.admin, "ec2", "delete-subnet", "--subnet-id", id)
			return err
		})
	}
}

// podsReached shows that a pod is known by its own address to another pod, and is reached by it from another machine,
// and finds names.
func podsReached(w *iam, client, server, onHost netip.Addr) {
	t := w.t
	inPod, err := networkOfPod("apart-server")
	if err != nil {
		t.Fatal(err)
	}
	defer inPod.Close()
	from, err := whoAsks(w, inPod, server.String()+":9091", func() {
		_, _ = w.kubectl("--context=apart", "exec", "apart-client", "--", "/workload", "fetch", "http://"+server.String()+":9091/") // the listener answers nothing
	})
	if err != nil || from != client.String() {
		t.Errorf("a pod is asked by %s (%v), want %s, the pod's own address", from, err, client)
	}
	for url, want := range map[string]string{"http://" + server.String() + ":8080/": "apart-server", "http://" + onHost.String() + ":9093/": ""} {
		if out, err := w.kubectl("--context=apart", "exec", "apart-client", "--", "/workload", "fetch", url); err != nil || want != "" && strings.TrimSpace(out) != want {
			t.Errorf("a pod asks %s: %q, %v", url, out, err)
		}
	}
	w.eventually("a pod finds names", func() error {
		_, err := w.kubectl("--context=apart", "exec", "apart-client", "--", "/workload", "resolve", "kubernetes.default.svc.cluster.local")
		return err
	})
	for address, machine := range w.namespacesOf("apart") {
		if answer, err := askFrom(w, machine, server.String()+":8080"); err != nil || !strings.Contains(answer, "apart-server") {
			t.Errorf("the machine at %s hears %q, %v", address, answer, err)
		}
	}
}

// askFrom asks an HTTP server from a network namespace.
func askFrom(w *iam, namespace *os.File, address string) (string, error) {
	var connection net.Conn
	err := host.InNetwork(namespace, func() (err error) {
		connection, err = (&net.Dialer{Timeout: 20 * time.Second}).DialContext(w.t.Context(), "tcp4", address)
		return err
	})
	if err != nil {
		return "", err
	}
	defer connection.Close()
	if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		return "", err
	}
	if _, err := io.WriteString(connection, "GET / HTTP/1.0\r\n\r\n"); err != nil {
		return "", err
	}
	answer, err := io.ReadAll(connection)
	return string(answer), err
}
