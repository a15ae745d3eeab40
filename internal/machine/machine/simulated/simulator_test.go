// SPDX-License-Identifier: Apache-2.0

package simulated_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"

	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/machine/machine/machinetest"
	"muster.dev/muster/internal/machine/machine/simulated"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/platform/statedir"
)

// scene is a state directory with simulated machines, and the API server that they join.
type scene struct {
	dir    statedir.Dir
	server *apiServer
	store  *machine.Store
	p      *simulated.Provider
}

func newScene(t *testing.T, life time.Duration) *scene {
	t.Helper()
	dir := statedir.Dir(t.TempDir())
	store, err := machine.NewStore(machine.StoreConfig{Dir: dir.Machines(), Subnets: machinetest.Subnets, Region: machinetest.Region()})
	if err != nil {
		t.Fatal(err)
	}
	p, err := simulated.New(simulated.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &scene{dir: dir, server: newAPIServer(t, life), store: store, p: p}
}

func (s *scene) authority() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

func (s *scene) userData(t *testing.T, token string) []byte {
	t.Helper()
	config, err := nodeconfig.Marshal(nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{
			Name: "test", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: s.authority(),
			CIDR: "10.100.0.0/16", PodCIDR: "10.244.0.0/16", Domain: "cluster.local",
		},
		Join: nodeconfig.Join{Token: token},
		Kubelet: nodeconfig.Kubelet{
			Flags:  []string{"--node-labels=muster.dev/nodegroup=blue"},
			Config: map[string]any{"registerWithTaints": []any{map[string]any{"key": "dedicated", "effect": "NoSchedule"}}},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := userdata.Write([]userdata.Part{
		{MediaType: userdata.TypeShellScript, Content: []byte("#!/bin/sh\n")}, {MediaType: nodeconfig.MediaType, Content: config},
	})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func (s *scene) launch(t *testing.T, i int, token string) machine.Instance {
	t.Helper()
	return s.launchFor(t, "Blue", i, token)
}

func (s *scene) launchFor(t *testing.T, cluster string, i int, token string) machine.Instance {
	t.Helper()
	instance, err := s.p.Launch(t.Context(), machine.LaunchRequest{ID: fmt.Sprintf("i-%017x", i), UserData: s.userData(t, token), Cluster: cluster})
	if err != nil {
		t.Fatal(err)
	}
	return instance
}

// simulate runs a simulator until the function that it returns is called.
func (s *scene) simulate(t *testing.T) (stop func()) {
	t.Helper()
	simulator, err := simulated.NewSimulator(simulated.SimulatorConfig{
		State: s.dir, Cluster: "Blue", APIServer: s.server.URL, CA: s.authority(), PodReader: s.server.podReaderFile(t), Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- simulator.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// eventually waits until a check, made while the API server stands still, says nothing.
func (s *scene) eventually(t *testing.T, check func() string) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		s.server.mutex.Lock()
		problem := check()
		s.server.mutex.Unlock()
		if problem == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(problem)
		}
		<-time.After(10 * time.Millisecond)
	}
}

func (s *scene) ready(want int) func() string {
	return func() string {
		ready := 0
		for _, node := range s.server.nodes {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready++
				}
			}
		}
		if ready != want || len(s.server.leases) < want || s.server.signed[certificatesv1.KubeletServingSignerName] < want {
			return fmt.Sprintf("%d nodes are ready, with %d leases, and %v certificates; want %d", ready, len(s.server.leases), s.server.signed, want)
		}
		// A node stores a certificate a moment after the API server has issued it.
		stored, err := filepath.Glob(filepath.Join(s.dir.Machines(), "*", "kubelet", "*.pem"))
		if err != nil || len(stored) < 2*want {
			return fmt.Sprintf("certificates stored: %v, %v", stored, err)
		}
		return ""
	}
}

// Machines join by the protocol of kubelets, although the API server is busy at first. What they ask for is what they
// were assigned, and what they keep is private.
func TestJoin(t *testing.T) {
	s := newScene(t, time.Hour)
	s.server.busy = 5
	defer s.simulate(t)()
	for i := range 5 {
		s.launch(t, i, token)
	}
	s.eventually(t, s.ready(5))

	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	const name, address = "ip-192-168-64-11.ap-test-1.compute.internal", "192.168.64.11"
	node := s.server.nodes[name]
	if node == nil {
		t.Fatalf("there is no node %s", name)
	}
	if node.Spec.ProviderID != "aws:///ap-test-1a/i-00000000000000000" || node.Labels["muster.dev/nodegroup"] != "blue" || node.Status.NodeInfo.KubeletVersion != "v1.36.3" {
		t.Errorf("node is %+v", node)
	}
	for label, want := range map[string]string{
		"topology.kubernetes.io/region": "ap-test-1", "topology.kubernetes.io/zone": "ap-test-1a", "topology.k8s.aws/zone-id": "apt1-az1",
		"node.kubernetes.io/instance-type": "local", "kubernetes.io/hostname": name,
	} {
		if node.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, node.Labels[label], want)
		}
	}
	if len(node.Spec.Taints) != 2 || node.Spec.Taints[0].Key != "dedicated" || node.Spec.Taints[1].Key != "muster.dev/simulated" {
		t.Errorf("taints are %v", node.Spec.Taints)
	}
	if pods := node.Status.Capacity.Pods().Value(); pods != 110 {
		t.Errorf("it takes %d pods, want 110 for a machine of no type", pods)
	}
	if disk := node.Status.Capacity.StorageEphemeral().String(); disk != "20Gi" {
		t.Errorf("its disk has %s, want 20Gi where nobody asks for another", disk)
	}
	if addresses := node.Status.Addresses; len(addresses) != 2 || addresses[0].Address != address || addresses[1].Address != name {
		t.Errorf("addresses are %v", addresses)
	}
	for _, request := range s.server.requests {
		block, _ := pem.Decode(request.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil {
			t.Fatal(err)
		}
		serving := request.Spec.SignerName == certificatesv1.KubeletServingSignerName
		if !strings.HasPrefix(parsed.Subject.CommonName, "system:node:ip-192-168-64-") || len(parsed.Subject.Organization) != 1 {
			t.Errorf("subject is %v", parsed.Subject)
		}
		if want := map[bool]int{true: 1, false: 0}[serving]; len(parsed.DNSNames) != want || len(parsed.IPAddresses) != want || len(parsed.EmailAddresses)+len(parsed.URIs) != 0 {
			t.Errorf("%s asks for %v and %v", request.Spec.SignerName, parsed.DNSNames, parsed.IPAddresses)
		}
	}
	files, err := filepath.Glob(filepath.Join(s.dir.Machine("i-00000000000000000"), "kubelet", "*.pem"))
	if err != nil || len(files) != 2 {
		t.Fatalf("certificates: %v, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v; want mode 0600", file, info.Mode(), err)
		}
	}
}

// A machine of another cluster is that cluster's to run: its token is never sent here, and its node does not come up
// here.
func TestAnotherClustersMachine(t *testing.T) {
	s := newScene(t, time.Hour)
	s.launchFor(t, "Green", 1, token) // found before the other, had it been looked at
	s.launch(t, 2, token)
	defer s.simulate(t)()
	s.eventually(t, s.ready(1))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if _, there := s.server.nodes["ip-192-168-64-12.ap-test-1.compute.internal"]; s.server.bootstrapped != 1 || len(s.server.nodes) != 1 || !there {
		t.Errorf("the token was used %d times, by %d nodes; want the machine of this cluster alone", s.server.bootstrapped, len(s.server.nodes))
	}
	if files, err := filepath.Glob(filepath.Join(s.dir.Machine("i-00000000000000001"), "kubelet", "*")); err != nil || len(files) != 0 {
		t.Errorf("the other cluster's machine has %v, %v", files, err)
	}
}

// A simulator that is started again needs no token: the nodes go on with the certificates they have.
func TestResume(t *testing.T) {
	s := newScene(t, time.Hour)
	stop := s.simulate(t)
	s.launch(t, 1, token)
	s.eventually(t, s.ready(1))
	stop()
	s.launch(t, 1, "")
	s.server.mutex.Lock()
	s.server.nodes = map[string]*corev1.Node{}
	s.server.leases = map[string]*coordinationv1.Lease{}
	s.server.mutex.Unlock()
	defer s.simulate(t)()
	s.eventually(t, s.ready(1))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if s.server.bootstrapped != 1 || len(s.server.requests) != 2 {
		t.Errorf("%d requests by the token, %d in all; want 1 and 2", s.server.bootstrapped, len(s.server.requests))
	}
}

// Both certificates are renewed before they end, by the node's own certificate.
func TestRotation(t *testing.T) {
	s := newScene(t, 2*time.Second)
	defer s.simulate(t)()
	s.launch(t, 1, token)
	s.eventually(t, func() string {
		if s.server.signed[certificatesv1.KubeAPIServerClientKubeletSignerName] < 3 || s.server.signed[certificatesv1.KubeletServingSignerName] < 3 {
			return fmt.Sprintf("certificates: %v, want three of each", s.server.signed)
		}
		return ""
	})
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if s.server.bootstrapped != 1 {
		t.Errorf("the token was used %d times, want once", s.server.bootstrapped)
	}
}

// A token that is refused is no end: a fresh one in the user data brings the node in.
func TestFreshToken(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	s.launch(t, 1, "abcdef.fedcba9876543210")
	s.launch(t, 2, token)
	s.eventually(t, s.ready(1))
	s.launch(t, 1, token)
	s.eventually(t, s.ready(2))
}

// A machine that is terminated falls silent.
func TestTerminate(t *testing.T) {
	s := newScene(t, time.Second)
	defer s.simulate(t)()
	instance := s.launch(t, 1, token)
	s.eventually(t, s.ready(1))
	if err := s.p.Terminate(t.Context(), instance.ID); err != nil {
		t.Fatal(err)
	}
	// Its certificates end every second: a node that lives would go on asking for them.
	last, since := 0, time.Now()
	s.eventually(t, func() string {
		if n := len(s.server.requests); n != last {
			last, since = n, time.Now()
		}
		if time.Since(since) < 2*time.Second {
			return "it still asks for certificates"
		}
		return ""
	})
	if _, err := os.Stat(s.dir.Machine(instance.ID)); !os.IsNotExist(err) {
		t.Errorf("it still has files: %v", err)
	}
}

// A machine that is stopped falls silent; started again it goes on as the same node, with the certificates that it has,
// and without a token.
func TestStopAndStart(t *testing.T) {
	s := newScene(t, time.Hour)
	defer s.simulate(t)()
	instance := s.launch(t, 1, token)
	s.eventually(t, s.ready(1))
	if err := s.p.Stop(t.Context(), instance.ID); err != nil {
		t.Fatal(err)
	}
	<-time.After(2 * time.Second) // the simulator has looked several times
	s.server.mutex.Lock()
	asked := len(s.server.requests)
	s.server.nodes = map[string]*corev1.Node{} // somebody deletes the Node meanwhile
	s.server.mutex.Unlock()
	<-time.After(time.Second)
	s.server.mutex.Lock()
	if len(s.server.nodes) > 0 {
		t.Error("a stopped machine registers its node")
	}
	s.server.mutex.Unlock()
	if again := s.launch(t, 1, ""); again.PrivateDNSName != instance.PrivateDNSName {
		t.Errorf("it is %s, was %s", again.PrivateDNSName, instance.PrivateDNSName)
	}
	s.eventually(t, s.ready(1))
	s.server.mutex.Lock()
	defer s.server.mutex.Unlock()
	if n := len(s.server.requests); n != asked {
		t.Errorf("it made %d requests for certificates, and has them", n-asked)
	}
}
