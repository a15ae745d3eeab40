// SPDX-License-Identifier: Apache-2.0

package nodeevidence_test

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster.dev/muster/internal/certificates/pki/pkitest"
	"muster.dev/muster/internal/explain/cause"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/explain/nodeevidence"
	"muster.dev/muster/internal/node/imds"
	"muster.dev/muster/internal/platform/systemd"
)

var noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// world is a node with everything that its evidence is read of. As it begins, nothing is wrong.
type world struct {
	t                                     *testing.T
	root                                  string
	units                                 map[string]systemd.Unit
	silent                                error // of the journal
	looks                                 int   // at it
	journal                               map[string][]nodeevidence.Line
	answer, small, healthz, runtime, role error
	clock                                 time.Time
	free                                  uint64
	plain                                 bool // without systemd
}

// layouts are those of the nodes that there are: EKS's by its own templates and tests, kubeadm's, and what Muster renders
// for a machine and for a host.
var layouts = map[string]string{
	"al2023":  "testdata/al2023",
	"al2":     "testdata/al2",
	"kubeadm": "testdata/kubeadm",
	"muster":  "../../node/render/testdata/cases/user-data-multipart/want",
}

func newWorld(t *testing.T, layout string) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), clock: noon, free: 50, journal: map[string][]nodeevidence.Line{}, units: map[string]systemd.Unit{}}
	if err := os.CopyFS(w.root, os.DirFS(layouts[layout])); err != nil {
		t.Fatal(err)
	}
	authority, _ := pkitest.Authority(t, "kubernetes", noon, 24*time.Hour)
	w.write("/etc/kubernetes/pki/ca.crt", inPEM(authority))
	w.write("/proc/uptime", "3600.00 7200.00\n")
	w.write("/etc/cni/net.d/10-x.conflist", "{}")
	if layout == "kubeadm" {
		w.certificate(time.Hour)
	}
	for _, name := range []string{"kubelet.service", "containerd.service"} {
		w.units[name] = systemd.Unit{Name: name, LoadState: "loaded", ActiveState: "active", SubState: "running", UnitFileState: "enabled"}
	}
	return w
}

func (w *world) write(name, text string) {
	w.t.Helper()
	path := filepath.Join(w.root, name)
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		_ = os.Remove(path)
		err = os.WriteFile(path, []byte(text), 0o600)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.RemoveAll(filepath.Join(w.root, name)); err != nil {
		w.t.Fatal(err)
	}
}

// certificate gives the kubelet one that has some time to live yet.
func (w *world) certificate(left time.Duration) {
	w.t.Helper()
	certificate, _ := pkitest.Authority(w.t, "system:node:rack-1", noon.Add(left-24*time.Hour), 24*time.Hour)
	w.write("/var/lib/kubelet/pki/kubelet-client-current.pem", inPEM(certificate))
}

func inPEM(c *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw}))
}

// ended has a unit end again and again, with its last words.
func (w *world) ended(unit, active, sub string, words ...string) {
	w.units[unit] = systemd.Unit{Name: unit, LoadState: "loaded", ActiveState: active, SubState: sub, Result: "exit-code", UnitFileState: "enabled"}
	for _, text := range words {
		w.journal[unit] = append(w.journal[unit], nodeevidence.Line{Time: noon.Add(-10 * time.Minute), Text: text})
	}
	if unit == "kubelet.service" {
		w.healthz = errors.New("connection refused")
	}
}

// logs has the kubelet, which runs, write lines a second ago.
func (w *world) logs(lines ...string) {
	for _, text := range lines {
		w.journal["kubelet.service"] = append(w.journal["kubelet.service"], nodeevidence.Line{Time: noon.Add(-time.Second), Text: text})
	}
}

func (w *world) ShowAll(_ context.Context, names ...string) ([]systemd.Unit, error) {
	var units []systemd.Unit
	for _, name := range names {
		u := w.units[name]
		if u.Name == "" {
			u = systemd.Unit{Name: name, LoadState: "not-found", ActiveState: "inactive"}
		}
		units = append(units, u)
	}
	return units, nil
}

func (w *world) Lines(_ context.Context, unit string, since time.Time, most int) ([]nodeevidence.Line, error) {
	w.looks++
	if w.silent != nil {
		return nil, w.silent
	}
	lines := slices.DeleteFunc(slices.Clone(w.journal[unit]), func(l nodeevidence.Line) bool { return l.Time.Before(since) })
	return lines[max(0, len(lines)-most):], nil
}

func (w *world) Answer(context.Context, string, []byte) (time.Time, error) { return w.clock, w.answer }

func (w *world) SmallAnswer(context.Context, string, []byte) (time.Time, error) {
	return w.clock, w.small
}

func (w *world) Healthz(context.Context, string) error { return w.healthz }
func (w *world) Runtime(context.Context, string) (string, error) {
	return "containerd 2.1.5", w.runtime
}
func (w *world) Role(context.Context) (string, error)      { return "node", w.role }
func (w *world) Free(string) (free, all uint64, err error) { return w.free, 100, nil }

func (w *world) config() nodeevidence.Config {
	cfg := nodeevidence.Config{Root: w.root, Name: "rack-1", Now: noon, Probes: w}
	if !w.plain {
		cfg.Units, cfg.Journal = w, w
	}
	return cfg
}

// report is what is decided about the node.
func (w *world) report() diagnosis.Report {
	w.t.Helper()
	facts, err := nodeevidence.Read(w.t.Context(), w.config())
	if err != nil {
		w.t.Fatal(err)
	}
	catalogue, err := cause.Default()
	if err != nil {
		w.t.Fatal(err)
	}
	return diagnosis.Decide(catalogue, facts, noon)
}

// verdict is a report in a line.
func verdict(r diagnosis.Report) string {
	var ids []string
	for _, f := range r.Causes {
		ids = append(ids, string(f.Cause))
	}
	return strings.TrimSpace(string(r.Verdict) + " " + strings.Join(ids, " "))
}

var (
	dialed = func(why error) error {
		return fmt.Errorf("asking: %w", &net.OpError{Op: "dial", Net: "tcp", Err: os.NewSyscallError("connect", why)})
	}
	errNoName   = fmt.Errorf("asking: %w", &net.DNSError{Err: "no such host", Name: "example.com", IsNotFound: true})
	errHangs    = fmt.Errorf("asking: %w", context.DeadlineExceeded)
	errNoAnswer = fmt.Errorf("asking: %w", &net.OpError{Op: "dial", Net: "tcp", Err: context.DeadlineExceeded})
)

// On each layout of a node nothing is wrong where nothing is, and each cause that a node can see is named, alone.
func TestNodes(t *testing.T) {
	t.Parallel()
	away := errors.New("connect: no such file or directory")
	for name, test := range map[string]struct {
		only   []string // layouts; nil for all
		change func(*world)
		want   string
	}{
		"nothing is wrong":      {nil, func(*world) {}, "Healthy"},
		"it has just booted":    {nil, func(w *world) { w.write("/proc/uptime", "9.5 1\n"); w.healthz = away }, "OnItsWay"},
		"the kubelet is silent": {nil, func(w *world) { w.healthz = away }, "NotKnown"},
		"no kubelet":            {nil, func(w *world) { delete(w.units, "kubelet.service"); w.healthz = away }, "Cause M-NODE-50"},
		"no containerd":         {nil, func(w *world) { delete(w.units, "containerd.service"); w.runtime = away }, "Cause M-NODE-50"},
		"containerd is down": {nil, func(w *world) {
			w.ended("containerd.service", "failed", "failed", `level=fatal msg="x"`)
			w.runtime = away
		}, "Cause M-NODE-56"},
		"the endpoint's name":  {nil, func(w *world) { w.answer = errNoName }, "Cause M-NET-26"},
		"refuses connections":  {nil, func(w *world) { w.answer = dialed(syscall.ECONNREFUSED) }, "Cause M-NET-27"},
		"drops packets":        {nil, func(w *world) { w.answer = errNoAnswer }, "Cause M-NET-23"},
		"drops large packets":  {nil, func(w *world) { w.answer, w.small = errHangs, nil }, "Cause M-NET-29"},
		"hangs in any case":    {nil, func(w *world) { w.answer, w.small = errHangs, errHangs }, "NotKnown"},
		"no route":             {nil, func(w *world) { w.answer = dialed(syscall.ENETUNREACH) }, "Cause M-NET-23"},
		"another authority":    {nil, func(w *world) { w.answer = x509.UnknownAuthorityError{} }, "Cause M-TLS-33"},
		"another name":         {nil, func(w *world) { w.answer = x509.HostnameError{Certificate: &x509.Certificate{}, Host: "x"} }, "Cause M-TLS-34"},
		"no authority":         {nil, func(w *world) { w.write("/etc/kubernetes/pki/ca.crt", "bm90IHBlbQo=") }, "Cause M-TLS-35"},
		"name servers":         {nil, func(w *world) { w.answer = &net.DNSError{Err: "server misbehaving"} }, "NotKnown"},
		"something else":       {nil, func(w *world) { w.answer = errors.New("EOF") }, "NotKnown"},
		"a wrong clock":        {nil, func(w *world) { w.clock = noon.Add(-time.Hour) }, "Cause M-IAM-08"},
		"a clock that is near": {nil, func(w *world) { w.clock = noon.Add(10 * time.Minute) }, "Healthy"},
		"a full disk":          {nil, func(w *world) { w.free = 0 }, "Cause M-NODE-61"},
		"no network plugin":    {nil, func(w *world) { w.remove("/etc/cni/net.d") }, "Cause M-READY-63"},
		"a proxy": {nil, func(w *world) {
			w.write("/etc/environment", "HTTPS_PROXY=http://10.0.0.9:3128\n")
			w.answer = errNoAnswer
		}, "Healthy"},
		"a proxy of before": {nil, func(w *world) {
			w.write("/etc/environment", "A=1\n # HTTPS_PROXY=http://10.0.0.9:3128\n")
			w.answer = errNoAnswer
		}, "Cause M-NET-23"},
		"swap":           {nil, func(w *world) { w.ended("kubelet.service", "activating", "auto-restart", swapIsOn) }, "Cause M-NODE-55"},
		"swap, long ago": {nil, func(w *world) { w.ended("kubelet.service", "failed", "failed", swapIsOn) }, "Cause M-NODE-55"},
		"what nobody knows": {nil, func(w *world) {
			w.ended("kubelet.service", "activating", "auto-restart", `E1120 11:59:59.0 1 run.go:72] "command failed" err="something else"`)
		}, "NotKnown"},
		"words of two lines": {nil, func(w *world) {
			w.ended("kubelet.service", "failed", "failed", "E1120 10250", "E1120 bind: address already in use")
		}, "NotKnown"},

		"no role":        {[]string{"al2023", "al2"}, func(w *world) { w.role = imds.ErrNotFound }, "Cause M-IAM-12"},
		"no metadata":    {[]string{"al2023", "al2"}, func(w *world) { w.role, w.healthz = away, away }, "NotKnown"},
		"no NodeConfig":  {[]string{"al2023"}, nodeadmFails(`{"level":"fatal","ts":1.7,"caller":"nodeadm/main.go:36","msg":"Command failed","error":"no config in chain"}`), "Cause M-NODE-47"},
		"a bad one":      {[]string{"al2023"}, nodeadmFails(`{"level":"fatal","msg":"Command failed","error":"CIDR is missing in cluster configuration"}`), "Cause M-NODE-48"},
		"no DNS name":    {[]string{"al2023"}, nodeadmFails(`{"level":"fatal","msg":"Command failed","error":"exceeded max wait time for InstanceCondition waiter"}`), "Cause M-NAME-42"},
		"SELinux":        {[]string{"al2023"}, nodeadmFails("Failed to locate executable /usr/bin/nodeadm: Permission denied", "nodeadm-config.service: Failed at step EXEC spawning /usr/bin/nodeadm: Permission denied"), "Cause M-NODE-53"},
		"no provider":    {[]string{"al2023"}, nodeadmFails(`{"level":"fatal","msg":"Command failed","error":"image credential provider binary was not found on path /etc/eks/image-credential-provider/ecr-credential-provider. error: stat"}`), "Cause M-NODE-59"},
		"nodeadm's else": {[]string{"al2023"}, nodeadmFails(`{"level":"fatal","msg":"Command failed","error":"unexpected EOF"}`), "NotKnown"},

		"it expired":         {[]string{"kubeadm"}, func(w *world) { w.certificate(-time.Minute) }, "Cause M-TLS-36"},
		"it is of later":     {[]string{"kubeadm"}, func(w *world) { w.certificate(72 * time.Hour) }, "Cause M-IAM-08"},
		"no certificate":     {[]string{"kubeadm"}, func(w *world) { w.remove("/var/lib/kubelet/pki") }, "NotKnown"},
		"a bad token":        {[]string{"kubeadm"}, badToken, "Cause M-TLS-39"},
		"a bad certificate":  {[]string{"kubeadm"}, func(w *world) { w.write("/var/lib/kubelet/pki/kubelet-client-current.pem", "x") }, "NotKnown"},
		"refused with it":    {[]string{"kubeadm"}, func(w *world) { w.logs(requestRefused) }, "Healthy"},
		"nothing but a unit": {[]string{"kubeadm"}, func(w *world) { w.remove("/etc/kubernetes"); w.remove("/var/lib/kubelet"); w.healthz = away }, "NotKnown"},
	} {
		for layout := range layouts {
			if test.only != nil && !slices.Contains(test.only, layout) {
				continue
			}
			t.Run(layout+", "+name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, layout)
				test.change(w)
				r := w.report()
				if got := verdict(r); got != test.want {
					t.Errorf("%s, want %s; other evidence: %+v", got, test.want, r.Other)
				}
				for _, f := range r.Causes {
					if strings.Contains(f.Fix, "$MACHINE") || strings.Contains(f.Fix, "$GROUP") || len(f.Evidence) == 0 {
						t.Errorf("%s: the fix is not for a node, or there is no evidence: %s", f.Cause, f.Fix)
					}
				}
			})
		}
	}
}

const (
	swapIsOn       = `E1120 11:50:00.000000    1201 run.go:72] "command failed" err="failed to run Kubelet: running with swap on is not supported, please disable swap or set --fail-swap-on flag to false"`
	requestRefused = `E1120 11:59:59.000000    1201 certificate_manager.go:562] "Failed while requesting a signed certificate from the control plane" err="cannot create certificate signing request: Unauthorized" logger="kubernetes.io/kube-apiserver-client-kubelet"`
)

// nodeadmFails has nodeadm fail at boot, so that neither containerd nor kubelet was started.
func nodeadmFails(words ...string) func(*world) {
	return func(w *world) {
		w.ended("nodeadm-config.service", "failed", "failed", words...)
		w.units["kubelet.service"] = systemd.Unit{Name: "kubelet.service", LoadState: "loaded", ActiveState: "inactive", UnitFileState: "disabled"}
		w.units["containerd.service"] = systemd.Unit{Name: "containerd.service", LoadState: "loaded", ActiveState: "inactive", UnitFileState: "disabled"}
		w.healthz, w.runtime = errors.New("connection refused"), errors.New("no such file or directory")
		w.remove("/var/lib/kubelet")
		w.remove("/etc/kubernetes/kubelet")
	}
}

// badToken has a node that joins by a token which the API server refuses.
func badToken(w *world) {
	raw, err := os.ReadFile(filepath.Join(w.root, "/etc/kubernetes/kubelet.conf"))
	if err != nil {
		w.t.Fatal(err)
	}
	w.remove("/etc/kubernetes/kubelet.conf")
	w.remove("/var/lib/kubelet/pki")
	text, _, _ := strings.Cut(string(raw), "    client-certificate:")
	w.write("/etc/kubernetes/bootstrap-kubelet.conf", text+"    token: abcdef.0123456789abcdef\n")
	w.logs(requestRefused)
}

// Each mixture of two causes on one node is named, both of them.
func TestMixturesOnANode(t *testing.T) {
	t.Parallel()
	ends := func(words string) func(*world) {
		return func(w *world) { w.ended("kubelet.service", "activating", "auto-restart", words) }
	}
	const fatal = `E1120 11:50:00.000000    1201 run.go:72] "command failed" err="`
	all := map[string]func(*world){
		"M-NODE-55": ends(swapIsOn),
		"M-NODE-52": ends(fatal + `failed to start ContainerManager: [invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0]"`),
		"M-NODE-54": ends(fatal + `failed to validate kubelet configuration, error: kubelet is configured to not run on a host using cgroup v1"`),
		"M-NODE-60": ends(`E1120 11:50:00.000000    1201 kubelet.go:1703] "Failed to start ContainerManager" err="invalid Node Allocatable configuration. Resource \"memory\" has a reservation of {{1 0}} but capacity of {{0 0}}. Expected capacity >= reservation."`),
		"M-NODE-62": ends(`E1120 11:50:00.000000    1201 server.go:205] "Failed to listen and serve" err="listen tcp 0.0.0.0:10250: bind: address already in use"`),
		"M-NODE-61": func(w *world) { w.free = 0 },
		"M-NODE-56": func(w *world) {
			w.ended("containerd.service", "failed", "failed", "level=fatal msg=x")
			w.runtime = errors.New("no such file or directory")
		},
		"M-NET-27": func(w *world) { w.answer = dialed(syscall.ECONNREFUSED) },
		"M-TLS-36": func(w *world) { w.certificate(-time.Minute) },
	}
	mixtures := 0
	for first := range all {
		for second := range all {
			if first >= second {
				continue
			}
			mixtures++
			w := newWorld(t, "kubeadm")
			all[first](w)
			all[second](w)
			r := w.report()
			var got []string
			for _, f := range r.Causes {
				got = append(got, string(f.Cause))
			}
			slices.Sort(got)
			if want := []string{first, second}; !slices.Equal(got, want) {
				t.Errorf("%v, want %v", got, want)
			}
		}
	}
	if mixtures < 30 {
		t.Errorf("%d mixtures", mixtures)
	}
}

// A node that has just booted, and whose programs are not there yet, has no cause, whatever they say for a moment.
func TestNodesThatAreSlow(t *testing.T) {
	t.Parallel()
	away := errors.New("connection refused")
	slow := map[string]func(*world){
		"no kubelet yet":     func(w *world) { w.healthz = away },
		"no runtime yet":     func(w *world) { w.healthz, w.runtime = away, away },
		"no certificate yet": func(w *world) { w.remove("/var/lib/kubelet/pki") },
		"no network yet":     func(w *world) { w.remove("/etc/cni/net.d") },
		"no name yet":        func(w *world) { w.answer = errNoName },
		"no route yet":       func(w *world) { w.answer = dialed(syscall.ENETUNREACH) },
		"no endpoint yet":    func(w *world) { w.answer = dialed(syscall.ECONNREFUSED) },
		"no clock yet":       func(w *world) { w.clock = noon.Add(-24 * time.Hour) },
		"it ends until then": func(w *world) { w.ended("kubelet.service", "activating", "auto-restart", "E1120 x"); w.runtime = away },
		"its log complains": func(w *world) {
			w.healthz = away
			w.logs(`E1120 11:59:59.0 1 kubelet_node_status.go:107] "Unable to register node with API server" err="Post \"https://x/api/v1/nodes\": dial tcp: lookup x: no such host"`)
		},
	}
	cases := 0
	for name, change := range slow {
		for layout := range layouts {
			cases++
			w := newWorld(t, layout)
			w.write("/proc/uptime", "12.00 1\n")
			change(w)
			r := w.report()
			if got := verdict(r); got != "OnItsWay" && got != "Healthy" {
				t.Errorf("%s, %s: %s %+v", layout, name, got, r.Other)
			}
		}
	}
	if cases < 30 {
		t.Errorf("%d cases", cases)
	}
}
