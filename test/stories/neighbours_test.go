// SPDX-License-Identifier: Apache-2.0

package stories

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster.dev/muster/internal/platform/host"
)

const (
	// neighbour is a pod that answers with its name on port 8080, on a node or, without one, anywhere.
	neighbour = `{apiVersion: v1, kind: Pod, metadata: {name: %[1]s, labels: {app: %[1]s}}, spec: {nodeName: %[2]q, terminationGracePeriodSeconds: 1, containers: [{name: w, image: "muster.dev/workload:v1", imagePullPolicy: IfNotPresent, args: [serve]}]}}
`
	// neighboursService is in front of the pod of the second cluster, at an address that no Service of the first one
	// has.
	neighboursService        = `{apiVersion: v1, kind: Service, metadata: {name: neighbour-blue}, spec: {clusterIP: ` + neighboursServiceAddress + `, selector: {app: neighbour-blue}, ports: [{port: 8080}]}}`
	neighboursServiceAddress = "10.100.77.77"
)

// startNeighbours starts a pod on each of the two machines of the first cluster.
func (s side) startNeighbours() {
	s.t.Helper()
	nodes := strings.Fields(s.mustKubectl("--context", s.cluster, "get", "nodes", "-o", "jsonpath={.items[*].metadata.name}"))
	if len(nodes) != 2 {
		s.t.Fatalf("cluster %s has the nodes %v", s.cluster, nodes)
	}
	s.apply(fmt.Sprintf(neighbour, "neighbour-near", nodes[0])+"---\n"+fmt.Sprintf(neighbour, "neighbour-far", nodes[1]), "--context="+s.cluster)
	s.mustKubectl("--context", s.cluster, "wait", "--for=condition=Ready", "pod/neighbour-near", "pod/neighbour-far", "--timeout=90s")
}

// pod is the address of a pod, and its network.
func (s side) pod(name string) (string, *os.File) {
	s.t.Helper()
	namespace, err := networkOfPod(name)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = namespace.Close() })
	return s.mustKubectl("--context", s.cluster, "get", "pod", name, "-o", "jsonpath={.status.podIP}"), namespace
}

// group is the security group of the cluster.
func (s side) group() string {
	s.t.Helper()
	return s.mustKubectl("--context", "muster-management", "-n", s.cluster, "get", "cluster", s.cluster, "-o", "jsonpath={.status.clusterSecurityGroupID}")
}

// reaches opens a connection from a namespace and closes it.
func reaches(ctx context.Context, namespace *os.File, address string) error {
	return host.InNetwork(namespace, func() error {
		connection, err := (&net.Dialer{Timeout: time.Second, FallbackDelay: -1}).DialContext(ctx, "tcp4", address)
		if err == nil {
			_ = connection.Close()
		}
		return err
	})
}

// podsAreNeighbours: pods of two clusters in one VPC reach each other by their own addresses, one way, once a rule says
// so, and Services never.
func podsAreNeighbours(t *testing.T, muster, blue side) {
	w := newIAM(t, muster.installation)
	blue.apply(fmt.Sprintf(neighbour, "neighbour-blue", "")+"---\n"+neighboursService, "--context=blue")
	blue.mustKubectl("--context", "blue", "wait", "--for=condition=Ready", "pod/neighbour-blue", "--timeout=90s")
	near, inNear := muster.pod("neighbour-near")
	far, _ := muster.pod("neighbour-far")
	theirs, inTheirs := blue.pod("neighbour-blue")
	for _, machine := range blue.namespacesOf("blue") {
		for _, address := range []string{theirs, neighboursServiceAddress} {
			blue.eventually("the machine of blue reaches "+address, func() error { return reaches(t.Context(), machine, address+":8080") })
		}
	}
	muster.eventually("pods on two machines of one cluster reach each other", func() error { return reaches(t.Context(), inNear, far+":8080") })
	strangers := func(when string, ways map[string]*os.File) {
		for address, from := range ways {
			if reaches(t.Context(), from, address+":8080") == nil {
				t.Errorf("%s: the pod at %s is reached from the other cluster", when, address)
			}
		}
	}
	strangers("without a rule", map[string]*os.File{theirs: inNear, near: inTheirs})

	w.mustAWS(nil, "ec2", "authorize-security-group-ingress", "--group-id", blue.group(), "--ip-permissions",
		"IpProtocol=tcp,FromPort=8080,ToPort=9091,UserIdGroupPairs=[{GroupId="+muster.group()+"}]")
	muster.eventually("the rule lets them in", func() error { return reaches(t.Context(), inNear, theirs+":8080") })
	if out := muster.mustKubectl("--context", "muster", "exec", "neighbour-near", "--", "/workload", "fetch", "http://"+theirs+":8080/"); strings.TrimSpace(out) != "neighbour-blue" {
		t.Errorf("the pod of blue says %q", out)
	}
	if from, err := whoAsks(w, inTheirs, theirs+":9091", func() { _ = reaches(t.Context(), inNear, theirs+":9091") }); err != nil || from != near {
		t.Errorf("the pod of blue is asked by %s (%v), want %s, the pod's own address", from, err, near)
	}
	strangers("with a rule for the other way", map[string]*os.File{near: inTheirs})

	strangers("by a Service", map[string]*os.File{neighboursServiceAddress: inNear})
	for address, machine := range muster.namespacesOf("muster") {
		if reaches(t.Context(), machine, neighboursServiceAddress+":8080") == nil {
			t.Errorf("the machine %s reaches a Service of the other cluster", address)
		}
	}
	if out, err := muster.kubectl("--context", "muster", "exec", "neighbour-near", "--", "/workload", "resolve", "neighbour-blue.default.svc.cluster.local"); err == nil {
		t.Errorf("a Service of the other cluster has the address %s", out)
	}
}

// keepTalking has the pods of the first cluster talk over one connection until the function that it returns is called,
// which says how that went.
func (s side) keepTalking() (stop func()) {
	s.t.Helper()
	address, _ := s.pod("neighbour-far")
	_, from := s.pod("neighbour-near")
	var asked atomic.Int64
	// Not a client of net/http: that dials anew where a busy machine is slow to tell it that a request was written.
	var connection net.Conn
	if err := host.InNetwork(from, func() (err error) {
		connection, err = (&net.Dialer{FallbackDelay: -1}).DialContext(s.t.Context(), "tcp", address+":8080")
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
	answers := bufio.NewReader(connection)
	ask := func() error {
		request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://"+address+":8080/", http.NoBody)
		if err != nil {
			return err
		}
		if err := connection.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
			return err
		}
		if err := request.Write(connection); err != nil {
			return err
		}
		response, err := http.ReadResponse(answers, request)
		if err != nil {
			return err
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err == nil && strings.TrimSpace(string(body)) != "neighbour-far" {
			err = fmt.Errorf("%s: %q", response.Status, body)
		}
		asked.Add(1)
		return err
	}
	ended, over := make(chan struct{}), make(chan error, 1)
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		var err error
		for err == nil {
			if err = ask(); err != nil {
				break
			}
			select {
			case <-ended:
				over <- ask()
				return
			case <-ticker.C:
			}
		}
		over <- err
	}()
	return func() {
		s.t.Helper()
		close(ended)
		err := <-over
		_ = connection.Close()
		s.t.Logf("pods of cluster %s asked each other %d times", s.cluster, asked.Load())
		if err != nil || asked.Load() < 10 {
			s.t.Errorf("pods of cluster %s asked each other %d times by one connection: %v", s.cluster, asked.Load(), err)
		}
	}
}
