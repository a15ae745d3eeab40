// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"encoding/json"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/BurntSushi/toml"
	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// amazonLinux2 is the configuration of containerd on EKS's Amazon Linux 2 images (amazon-eks-ami,
// templates/al2/runtime), with a mirror for one runtime more.
const amazonLinux2 = `version = 2
root = "/var/lib/containerd"
state = "/run/containerd"
imports = ["/etc/containerd/config.d/*.toml"]
[grpc]
address = "/run/dockershim.sock"
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
discard_unpacked_layers = true
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/pause:3.5"
max_concurrent_downloads = 7
stream_idle_timeout = "2h"
[plugins."io.containerd.grpc.v1.cri".registry]
config_path = "/etc/containerd/certs.d:/etc/docker/certs.d"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.kata]
runtime_type = "io.containerd.kata.v2"
sandbox_mode = "shim"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
`

func fileOf(t *testing.T, spec nodeconfig.Spec, facts render.Facts, path string) []byte {
	t.Helper()
	files, err := render.Files(spec, testInstance(), facts, render.MachineLayout())
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(files, func(f render.File) bool { return f.Path == path })
	if i < 0 {
		t.Fatalf("there is no %s", path)
	}
	return files[i].Content
}

// containerdOf is the configuration of containerd that follows from a user's.
func containerdOf(t *testing.T, config string) map[string]any {
	t.Helper()
	spec := testSpec(t)
	spec.Containerd.Config = config
	var out map[string]any
	if err := toml.Unmarshal(fileOf(t, spec, testFacts(), render.PathContainerdConfig), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func at(in map[string]any, path ...string) any {
	for _, key := range path[:len(path)-1] {
		in, _ = in[key].(map[string]any)
	}
	return in[path[len(path)-1]]
}

// Version 2 becomes version 3, as containerd 2 makes it of a file. Settings that only muster can decide stay muster's,
// with a word for each.
func TestContainerdIsMigrated(t *testing.T) {
	const images, runtime = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"
	got := containerdOf(t, amazonLinux2)
	for _, want := range []struct {
		value any
		path  []string
	}{
		{int64(3), []string{"version"}},
		{render.ContainerdSocket, []string{"grpc", "address"}},
		{[]any{"/etc/containerd/config.d/*.toml"}, []string{"imports"}},
		{true, []string{"plugins", images, "discard_unpacked_layers"}},
		{int64(7), []string{"plugins", images, "max_concurrent_downloads"}},
		{"/etc/containerd/certs.d:/etc/docker/certs.d", []string{"plugins", images, "registry", "config_path"}},
		{render.PauseImage, []string{"plugins", images, "pinned_images", "sandbox"}},
		{"2h", []string{"plugins", "io.containerd.grpc.v1.cri", "stream_idle_timeout"}},
		{nil, []string{"plugins", "io.containerd.grpc.v1.cri", "containerd"}},
		{false, []string{"plugins", runtime, "containerd", "runtimes", "runc", "options", "SystemdCgroup"}},
		{"shim", []string{"plugins", runtime, "containerd", "runtimes", "kata", "sandboxer"}},
		{nil, []string{"plugins", runtime, "containerd", "discard_unpacked_layers"}},
		{[]any{render.BinDir + "/cni"}, []string{"plugins", runtime, "cni", "bin_dirs"}},
		{nil, []string{"plugins", runtime, "cni", "bin_dir"}},
	} {
		if diff := cmp.Diff(want.value, at(got, want.path...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", strings.Join(want.path, "."), diff)
		}
	}
	notes := strings.Join(render.Notes(nodeconfig.Spec{Containerd: nodeconfig.Containerd{Config: amazonLinux2}}, render.MachineLayout()), "\n")
	for _, want := range []string{"sandbox_image is left out", "cni.bin_dir is left out", "grpc.address is left out", "runc.options.SystemdCgroup is left out: it is false", "migrated from version 2"} {
		if !strings.Contains(notes, want) {
			t.Errorf("nothing is said of %q:\n%s", want, notes)
		}
	}
}

// A document without a version that has the old plugin is of version 2, too. A document of version 3 with the old
// plugin is a mistake that containerd would not tell.
func TestContainerdVersions(t *testing.T) {
	unversioned := strings.TrimPrefix(amazonLinux2, "version = 2\n")
	if diff := cmp.Diff(containerdOf(t, amazonLinux2), containerdOf(t, unversioned)); diff != "" {
		t.Errorf("without a version (-2 +none):\n%s", diff)
	}
	for config, want := range map[string]string{
		"version = 3\n" + unversioned: "containerd 2 does not read this here any more",
		"version = 1\n":               "must be 2 or 3",
	} {
		spec := testSpec(t)
		spec.Containerd.Config = config
		if _, err := render.Files(spec, testInstance(), testFacts(), render.MachineLayout()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.12q: %v", config, err)
		}
	}
}

// Mirrors that user data writes to /etc/containerd/certs.d are used. Mirrors that it names in containerd's
// configuration are used, too: containerd refuses to have both.
func TestRegistryHosts(t *testing.T) {
	path := []string{"plugins", "io.containerd.cri.v1.images", "registry", "config_path"}
	if got := at(containerdOf(t, ""), path...); got != "/etc/containerd/certs.d" {
		t.Errorf("config_path is %v", got)
	}
	for _, plugin := range []string{"io.containerd.cri.v1.images", "io.containerd.grpc.v1.cri"} {
		if got := at(containerdOf(t, "[plugins.'"+plugin+"'.registry.mirrors.'docker.io']\nendpoint = ['https://m.example.com']\n"), path...); got != nil {
			t.Errorf("beside mirrors in %s config_path is %v", plugin, got)
		}
	}
}

// Containers may open as many files as on EKS. Where that would have to be raised, they have the machine's limits: no
// limit at all can be set of a container of a pod with hostUsers: false there.
func TestOpenFiles(t *testing.T) {
	type limit struct {
		Type       string
		Hard, Soft float64
	}
	for most, want := range map[uint64][]limit{
		0:       {{"RLIMIT_NOFILE", 1048576, 65536}},
		20000:   {},
		500000:  {},
		1 << 21: {},
	} {
		facts := testFacts()
		facts.OpenFiles = most
		var spec struct{ Process struct{ Rlimits []limit } }
		if err := json.Unmarshal(fileOf(t, testSpec(t), facts, "/etc/containerd/base-runtime-spec.json"), &spec); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, spec.Process.Rlimits); diff != "" {
			t.Errorf("%d (-want +got):\n%s", most, diff)
		}
	}
}

func testInstance() render.Instance {
	return render.Instance{ID: "i-0123456789abcdef0", PrivateIP: netip.MustParseAddr("192.168.64.11"), PrivateDNSName: "worker-1"}
}

func testFacts() render.Facts {
	return render.Facts{CPUs: 2, MemoryBytes: 8 << 30, CgroupVersion: 2, SysResource: true, OverlayFS: true}
}

func testSpec(t *testing.T) nodeconfig.Spec {
	t.Helper()
	return nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{Name: "test", APIServerEndpoint: "https://192.168.64.2:443", CertificateAuthority: authority(t), CIDR: "10.100.0.0/16"},
		Join:    nodeconfig.Join{Token: "abcdef.0123456789abcdef"},
	}
}
