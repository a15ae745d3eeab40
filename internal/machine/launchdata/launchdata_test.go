// SPDX-License-Identifier: Apache-2.0

package launchdata

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/aws/ami"
	"muster.dev/muster/internal/machine/machine"
	"muster.dev/muster/internal/network/clusternetwork"
	"muster.dev/muster/internal/network/clusternetwork/clusternetworktest"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/userdata"
	"muster.dev/muster/internal/plane/component"
	"muster.dev/muster/internal/platform/statedir"
)

// writeUserData writes user data for a machine, by a cluster whose authority was just made.
func writeUserData(t *testing.T, m *v1alpha1.Machine, token string) ([]byte, error) {
	t.Helper()
	return writeUserDataIn(t, clusternetworktest.Network(), m, token)
}

func writeUserDataIn(t *testing.T, network clusternetwork.Network, m *v1alpha1.Machine, token string) ([]byte, error) {
	t.Helper()
	c := component.Config{Account: component.Account{VPC: true}, Dir: statedir.Cluster(t.TempDir()), Network: network}
	c.Cluster.Name, c.Cluster.Spec.Name = "test-slug", "test"
	c.Cluster.Default()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	path := c.Authority("cluster")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	render, err := Renderer(c)
	if err != nil {
		t.Fatal(err)
	}
	return render(m, token)
}

func launchedBy(template *v1alpha1.NodeGroupLaunchTemplate) *v1alpha1.Machine {
	return &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{
		ClusterName: "test", NodeGroup: "workers", Provider: v1alpha1.ProviderLocal, LaunchTemplate: template,
		Labels: v1alpha1.NodeLabels{"tier": "web", "empty": ""},
		Taints: v1alpha1.NodeTaints{{Key: "dedicated", Value: "gpu", Effect: "NoSchedule"}, {Key: "quiet", Effect: "NoExecute"}},
	}}
}

// readUserData reads user data as a machine does.
func readUserData(t *testing.T, raw []byte) (types []string, spec nodeconfig.Spec) {
	t.Helper()
	if len(raw) > machine.MaxUserData {
		t.Fatalf("it is %d bytes long", len(raw))
	}
	parts, err := userdata.Read(raw)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		types = append(types, part.MediaType)
	}
	documents, doubts := userdata.NodeConfigs(parts)
	merged, err := nodeconfig.Read(documents, false)
	if err != nil || len(doubts) > 0 {
		t.Fatalf("%v, %q", err, doubts)
	}
	if problems := merged.Spec.Validate(); len(problems) > 0 {
		t.Fatal(problems.ToAggregate())
	}
	return types, merged.Spec
}

func TestUserData(t *testing.T) {
	const token = "abcdef.0123456789abcdef"
	raw, err := writeUserData(t, launchedBy(nil), token)
	if err != nil {
		t.Fatal(err)
	}
	types, spec := readUserData(t, raw)
	if diff := cmp.Diff([]string{nodeconfig.MediaType}, types); diff != "" {
		t.Errorf("parts (-want +got):\n%s", diff)
	}
	spec.Cluster.CertificateAuthority = nil
	want := nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{Name: "test", APIServerEndpoint: "https://172.31.0.4:443", CIDR: "10.100.0.0/16", PodCIDR: "10.244.0.0/16", Domain: "cluster.local"},
		Kubelet: nodeconfig.Kubelet{
			Flags: []string{"--node-labels=eks.amazonaws.com/capacityType=ON_DEMAND,eks.amazonaws.com/nodegroup=workers,eks.amazonaws.com/nodegroup-image=" + ami.OfMachine(&v1alpha1.Machine{}) + ",empty=,muster.dev/nodegroup=workers,tier=web"},
			Config: map[string]any{"registerWithTaints": []any{
				map[string]any{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}, map[string]any{"key": "quiet", "effect": "NoExecute"},
			}},
		},
		Join: nodeconfig.Join{Token: token},
	}
	if diff := cmp.Diff(want, spec); diff != "" {
		t.Errorf("NodeConfig (-want +got):\n%s", diff)
	}
	network := clusternetworktest.Network()
	network.PodsInSubnets = true
	if raw, err = writeUserDataIn(t, network, launchedBy(nil), token); err != nil {
		t.Fatal(err)
	}
	if _, spec := readUserData(t, raw); spec.Cluster.PodCIDR != "" || spec.Cluster.CIDR != "10.100.0.0/16" {
		t.Errorf("a machine with a range of its own is told %+v", spec.Cluster)
	}
	joined, err := writeUserData(t, launchedBy(nil), "")
	if err != nil || strings.Contains(string(joined), "token") {
		t.Errorf("a machine that has joined is given a token: %v\n%s", err, joined)
	}
}

// A machine of Fargate takes one pod, and its kubelet leaves the pod all that it requests.
func TestUserDataOfFargate(t *testing.T) {
	raw, err := writeUserData(t, &v1alpha1.Machine{Spec: v1alpha1.MachineSpec{
		ClusterName: "test", Provider: v1alpha1.ProviderLocal, InstanceProfile: "eks-pods", Labels: v1alpha1.NodeLabels{"eks.amazonaws.com/compute-type": "fargate"},
		Fargate: &v1alpha1.MachineFargate{PodName: "web", Logging: &v1alpha1.FargateLogging{Output: "[OUTPUT]\n  Name x\n", Filters: "# f", Parsers: "# p"}},
	}}, "")
	if err != nil {
		t.Fatal(err)
	}
	_, spec := readUserData(t, raw)
	want := nodeconfig.Kubelet{
		Flags:  []string{"--node-labels=eks.amazonaws.com/compute-type=fargate"},
		Config: map[string]any{"maxPods": int64(1), "kubeReserved": map[string]any{"cpu": "0", "memory": "156Mi"}},
	}
	if diff := cmp.Diff(want, spec.Kubelet); diff != "" || !spec.Join.InstanceRole {
		t.Errorf("NodeConfig (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(nodeconfig.Logging{Output: "[OUTPUT]\n  Name x\n", Filters: "# f", Parsers: "# p"}, spec.Logging); diff != "" {
		t.Errorf("the log router (-want +got):\n%s", diff)
	}
	if pods := Pods(raw, "fargate-250-512"); pods != 1 {
		t.Errorf("it has addresses for %d pods", pods)
	}
}

// What the launch template says comes first, so that it cannot send the machine elsewhere; flags come together.
func TestUserDataOfLaunchTemplate(t *testing.T) {
	theirs := `Content-Type: multipart/mixed; boundary=B

--B
Content-Type: text/x-shellscript

#!/bin/sh
echo hello
--B
Content-Type: application/node.eks.aws

apiVersion: node.eks.aws/v1alpha1
kind: NodeConfig
spec:
  cluster: {name: elsewhere, apiServerEndpoint: "https://elsewhere.example"}
  kubelet: {flags: [--v=4], config: {maxPods: 17}}
--B--
`
	for name, text := range map[string]string{"plain": theirs, "base64": base64.StdEncoding.EncodeToString([]byte(theirs))} {
		t.Run(name, func(t *testing.T) {
			raw, err := writeUserData(t, launchedBy(&v1alpha1.NodeGroupLaunchTemplate{UserData: text}), "abcdef.0123456789abcdef")
			if err != nil {
				t.Fatal(err)
			}
			types, spec := readUserData(t, raw)
			if diff := cmp.Diff([]string{userdata.TypeShellScript, nodeconfig.MediaType, nodeconfig.MediaType}, types); diff != "" {
				t.Errorf("parts (-want +got):\n%s", diff)
			}
			if pods, ok := spec.Kubelet.MaxPods(); !ok || pods != 17 || spec.Cluster.Name != "test" || spec.Cluster.APIServerEndpoint != "https://172.31.0.4:443" ||
				len(spec.Kubelet.Flags) != 2 || spec.Kubelet.Flags[0] != "--v=4" {
				t.Errorf("together: %+v", spec)
			}
		})
	}
	// What is too long as it is goes compressed; what cannot be compressed enough, or read, is an error that names the
	// field.
	long := "#!/bin/sh\n" + strings.Repeat("echo hello\n", 1400)
	raw, err := writeUserData(t, launchedBy(&v1alpha1.NodeGroupLaunchTemplate{UserData: long}), "abcdef.0123456789abcdef")
	if err != nil {
		t.Fatal(err)
	}
	if types, _ := readUserData(t, raw); len(types) != 2 {
		t.Errorf("parts: %q", types)
	}
	noise := make([]byte, 12000)
	_, _ = rand.Read(noise) // never fails
	for _, text := range []string{"#!/bin/sh\n# " + base64.StdEncoding.EncodeToString(noise), "Content-Type: multipart/mixed\n\nno boundary"} {
		_, err := writeUserData(t, launchedBy(&v1alpha1.NodeGroupLaunchTemplate{UserData: text}), "abcdef.0123456789abcdef")
		if err == nil || !strings.Contains(err.Error(), "launch template's user") || strings.Contains(err.Error(), "0123456789abcdef") {
			t.Errorf("got %v", err)
		}
	}
}

// The name of a group may be no value of a label; its slug is one always.
func TestLabelOfTheGroup(t *testing.T) {
	m := launchedBy(nil)
	m.Spec.NodeGroup = "Team_Blue-"
	raw, err := writeUserData(t, m, "")
	if err != nil {
		t.Fatal(err)
	}
	_, spec := readUserData(t, raw)
	want := v1alpha1.LabelNodeGroup + "=" + v1alpha1.NodeGroupSlug("Team_Blue-")
	if got := strings.Join(spec.Kubelet.Flags, " "); !strings.Contains(got, want) || strings.Contains(got, "Team_Blue") {
		t.Errorf("flags %q, want %s among them", got, want)
	}
}
