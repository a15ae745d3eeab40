// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/render"
)

var update = flag.Bool("update", false, "write the golden files anew")

func instance() render.Instance {
	return render.Instance{
		ID: "i-0123456789abcdef0", PrivateIP: netip.MustParseAddr("192.168.64.11"), PrivateDNSName: "ip-192-168-64-11.muster.internal",
	}
}

// TestFiles pins every file and the kubelet's arguments, for some machines and some users' wishes.
func TestFiles(t *testing.T) {
	authority, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	large := render.Facts{CPUs: 8, MemoryBytes: 32 << 30, CgroupVersion: 2, Kernel: "6.1.0", SysResource: true, OverlayFS: true}
	for name, facts := range map[string]render.Facts{
		"plain":    large,
		"wishes":   large,
		"joined":   large,
		"cgroupv1": {CPUs: 2, MemoryBytes: 24 << 30, CgroupVersion: 1, SysResource: false, OverlayFS: true},
		"small":    {CPUs: 1, MemoryBytes: 1 << 30, CgroupVersion: 2, SysResource: true, OverlayFS: false},
	} {
		t.Run(name, func(t *testing.T) {
			userData, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
			if errors.Is(err, fs.ErrNotExist) {
				userData, err = os.ReadFile("testdata/plain.yaml")
			}
			if err != nil {
				t.Fatal(err)
			}
			userData = bytes.ReplaceAll(userData, []byte("AUTHORITY"), []byte(base64.StdEncoding.EncodeToString(authority)))
			config, err := render.ParseNodeConfig(userData)
			if err != nil {
				t.Fatal(err)
			}
			files, err := render.Files(config, instance(), facts)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			for _, arg := range render.KubeletArgs(config, instance(), config.Bootstrap != nil) {
				fmt.Fprintln(&got, "kubelet", arg)
			}
			for _, file := range files {
				content := bytes.ReplaceAll(file.Content, authority, []byte("(the certificate authority)\n"))
				fmt.Fprintf(&got, "\n==> %s %v <==\n%s", file.Path, file.Mode, content)
			}
			golden(t, filepath.Join("testdata", name+".golden"), got.String())
		})
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; run go test ./internal/render -update if that is meant (-want +got):\n%s", path, diff)
	}
}

func TestCNIConfig(t *testing.T) {
	got, err := render.CNIConfig(netip.MustParsePrefix("10.244.3.0/24"))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/cni.golden", string(got))
}

func TestClusterDNS(t *testing.T) {
	for cidr, want := range map[string]string{
		"10.100.0.0/16":  "10.100.0.10",
		"172.20.0.16/28": "172.20.0.26",
		"10.0.255.0/24":  "10.0.255.10",
		"10.0.0.250/29":  "",
	} {
		got, err := render.ClusterDNS(netip.MustParsePrefix(cidr))
		if want == "" {
			if err == nil {
				t.Errorf("ClusterDNS(%s) is %s, want an error", cidr, got)
			}
			continue
		}
		if err != nil || got.String() != want {
			t.Errorf("ClusterDNS(%s) is %s, %v; want %s", cidr, got, err, want)
		}
	}
}

// All problems are reported at once, with the paths of their fields and never with the token.
func TestParseNodeConfigReportsEverything(t *testing.T) {
	_, err := render.ParseNodeConfig([]byte(`apiVersion: node.muster.dev/v1
kind: Node
cluster:
  apiServerEndpoint: http://192.168.64.2
  certificateAuthority: aGVsbG8=
  serviceCIDR: 10.100.0.1/16
  podCIDR: fd00::/64
  clusterDomain: "not a domain"
bootstrap:
  token: secret.butwrong
kubelet:
  labels:
    "a b": c
  taints:
  - {key: dedicated, value: "x y", effect: Never}
  maxPods: 4000
`))
	if err == nil {
		t.Fatal("accepted")
	}
	for _, path := range []string{
		"apiVersion", "kind", "cluster.name", "cluster.apiServerEndpoint", "cluster.certificateAuthority", "cluster.serviceCIDR",
		"cluster.podCIDR", "cluster.clusterDomain", "bootstrap.token", "kubelet.labels", "kubelet.taints[0].value",
		"kubelet.taints[0].effect", "kubelet.maxPods",
	} {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("%s is not mentioned in: %v", path, err)
		}
	}
	if strings.Contains(err.Error(), "butwrong") {
		t.Errorf("the token is shown: %v", err)
	}
}

func TestParseNodeConfigIsStrict(t *testing.T) {
	for name, userData := range map[string]string{
		"unknown field": "apiVersion: node.muster.dev/v1alpha1\nkind: NodeConfig\ncluster: {nmae: x}\n",
		"twice":         "apiVersion: node.muster.dev/v1alpha1\nkind: NodeConfig\nkind: NodeConfig\n",
		"a script":      "#!/bin/bash\n/etc/eks/bootstrap.sh\n",
		"empty":         "",
		"too long":      "# " + strings.Repeat("x", render.MaxNodeConfig),
	} {
		if _, err := render.ParseNodeConfig([]byte(userData)); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestMarshal(t *testing.T) {
	authority, err := os.ReadFile("testdata/ca.crt")
	if err != nil {
		t.Fatal(err)
	}
	config := render.NodeConfig{
		Cluster: render.ClusterDetails{
			Name: "default", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: authority,
			ServiceCIDR: "10.100.0.0/16", PodCIDR: "10.244.0.0/16", ClusterDomain: "cluster.local",
		},
		Bootstrap: &render.Bootstrap{Token: "abcdef.0123456789abcdef"},
	}
	raw, err := config.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	got, err := render.ParseNodeConfig(raw)
	if err != nil {
		t.Fatal(err)
	}
	config.APIVersion, config.Kind, config.Kubelet.MaxPods = render.APIVersion, render.Kind, 110
	if diff := cmp.Diff(config, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func FuzzParseNodeConfig(f *testing.F) {
	for _, name := range []string{"plain", "wishes", "joined"} {
		userData, err := os.ReadFile(filepath.Join("testdata", name+".yaml"))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(userData)
	}
	f.Fuzz(func(t *testing.T, userData []byte) {
		config, err := render.ParseNodeConfig(userData)
		if err != nil {
			return
		}
		if _, err := render.Files(config, instance(), render.Facts{CPUs: 1, MemoryBytes: 1 << 30, CgroupVersion: 2}); err != nil {
			t.Errorf("what was accepted cannot be rendered: %v", err)
		}
	})
}
