// SPDX-License-Identifier: Apache-2.0

package host

import (
	"encoding/pem"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
)

// program stands in for those of a node: it notes its arguments, its environment and where it runs, says that it is
// ready to whoever wants to know, and stays.
const program = `#!/bin/sh
noted=/run/"${0##*/}.noted"
{ printf '%s\n' "$@" "BLANKS=$BLANKS" "HTTPS_PROXY=$HTTPS_PROXY"; sed -n 's/.*name=systemd:/in /p;s/^0::\(..\)/in \1/p' /proc/self/cgroup; } > "$noted.new"
mv "$noted.new" "$noted"
[ -z "$NOTIFY_SOCKET" ] || systemd-notify --ready
exec sleep 1000
`

// TestUnitsOfANode gives systemd the files that internal/node/render makes of a host: it hands every argument to the
// kubelet as it was meant, whatever is in it, and every variable; others cannot see values that may be passwords; all
// run in the slice that the kubelet's configuration names.
func TestUnitsOfANode(t *testing.T) {
	h := start(t, Config{Name: "worker-1", Address: netip.MustParseAddr("192.168.64.201"), Network: newNetwork(t), Bin: "/usr/bin"})
	authority, _ := pkitest.Authority(t, "kubernetes", time.Now(), time.Hour)
	spec := nodeconfig.Spec{
		Cluster: nodeconfig.Cluster{
			Name: "default", APIServerEndpoint: "https://192.168.64.2:443", CIDR: "10.100.0.0/16", CertificateAuthority: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: authority.Raw}),
		},
		Kubelet: nodeconfig.Kubelet{Flags: []string{
			"--node-labels=a=b,c=d", "--eviction-hard=memory.available<200Mi,nodefs.available<10%", "--empty=", "--v", "*",
			`--tracing={"path":"C:\\x","cost":"$1${HOME}` + "`2" + `'%h%%"}`, "--single='", `--double="`, `--backslash=\\`, "--other=ü;#~!",
		}},
		Instance: nodeconfig.Instance{Environment: map[string]map[string]string{
			"default": {"HTTPS_PROXY": `http://u:p$a"s\\s%20'` + "`" + `@192.168.64.2`, "BLANKS": " a  b "},
		}},
	}
	instance := render.Instance{PrivateIP: h.Address, PrivateDNSName: h.Name}
	files, err := render.Files(spec, instance, render.Facts{CPUs: 2, MemoryBytes: 8 << 30}, render.HostLayout())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"containerd", "kubelet", "kube-proxy"} {
		files = append(files, render.File{Path: "/usr/local/bin/" + name, Mode: 0o755, Content: []byte(program)})
	}
	for _, file := range files {
		if err := h.Write(file.Path, string(file.Content), file.Mode); err != nil {
			t.Fatal(err)
		}
	}
	run(t, h, "systemctl", "daemon-reload")
	run(t, h, "systemctl", "enable", "--now", "kubelet.service", "kube-proxy.service")
	for name, args := range map[string][]string{
		"kubelet":    render.KubeletArgs(spec, instance, render.HostLayout(), true),
		"kube-proxy": {"--config=" + render.PathKubeProxyConfig},
		"containerd": {"--config=" + render.PathContainerdConfig}, // the kubelet needs it
	} {
		want := strings.Join(slices.Concat(args, render.Environment(spec, name), []string{"in /runtime.slice/" + name + ".service"}), "\n")
		got := run(t, h, "sh", "-c", "for i in $(seq 100); do if [ -e /run/$1.noted ]; then exec cat /run/$1.noted; fi; sleep .1; done; exit 1", "sh", name)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s was started with something else (-want +got):\n%s", name, diff)
		}
		if shown := run(t, h, "systemctl", "show", name); strings.Contains(shown, "p$a") {
			t.Errorf("systemd shows the password: %s", shown)
		}
	}
}
