// SPDX-License-Identifier: Apache-2.0

package hostjoin

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"muster.dev/muster/internal/certificates/token"
	"muster.dev/muster/internal/node/nodeconfig"
	"muster.dev/muster/internal/node/render"
	"muster.dev/muster/internal/platform/release"
	"muster.dev/muster/internal/platform/release/releasetest"
	"muster.dev/muster/internal/platform/systemd/systemdtest"
)

const (
	nodeName   = "worker-1"
	endpoint   = "https://192.168.64.2:443"
	testToken  = "abcdef.0123456789abcdef"
	otherToken = "ghijkl.0123456789abcdef"
)

var errCrash = errors.New("killed") //nolint:gochecknoglobals // a constant

// world is a host, its systemd and its cluster.
type world struct {
	t        *testing.T
	root     string
	programs string
	units    *systemdtest.Fake
	cluster  *fake.Clientset
	ca       *x509.Certificate
	caKey    *ecdsa.PrivateKey
	caPEM    []byte

	// containerd tells that one answers that is not ours.
	containerd bool
	// decide is what becomes of a request; nil: it is approved and issued.
	decide func(*certificatesv1.CertificateSigningRequest)
	// tokens are those that the API server takes.
	tokens map[string]bool
	// now is what the host's clock says; zero: the truth.
	now time.Time
	// notReady keeps the Node from becoming Ready.
	notReady bool
	pods     int // sandboxes in the runtime
	// removedSince is from when on pods were removed.
	removedSince time.Time

	mu      sync.Mutex // of changes: some are made at the same time
	crashAt int        // of all changes; 0: never
	changes []string
	steps   []Step
	run     []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, root: t.TempDir(), programs: t.TempDir(), tokens: map[string]bool{testToken: true, otherToken: true}}
	for _, dir := range []string{"/etc/systemd/system", "/var/lib", "/var/log", "/usr/local/bin", "/run", "/proc/sys/net/ipv4", "/proc/sys/net/netfilter", "/proc/sys/vm", "/opt", "/usr/libexec"} {
		w.mkdir(dir)
	}
	w.write("/proc/sys/net/ipv4/ip_forward", "0\n")
	w.write("/proc/sys/vm/overcommit_memory", "0\n")
	w.write(closeWait, "60\n")
	w.write("/etc/hostname", "somebody else's\n")
	for _, name := range []string{"kubernetes", "containerd", "containerd-shim-runc-v2", "ctr", "runc", "muster", "cni/ptp", "cni/loopback", "images/pause.tar"} {
		path := release.Default().Program(w.programs, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("program "+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"kubelet", "kube-proxy"} {
		if err := os.Symlink("kubernetes", release.Default().Program(w.programs, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.units = &systemdtest.Fake{Root: w.root, Started: w.started}
	w.newCluster()
	return w
}

func (w *world) newCluster() {
	w.ca, w.caKey = newAuthority(w.t)
	w.caPEM = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.ca.Raw})
	w.cluster = fake.NewClientset(&corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kubeadm-config"},
		Data: map[string]string{"ClusterConfiguration": `apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
clusterName: muster
networking: {serviceSubnet: 10.100.0.0/16, podSubnet: 10.244.0.0/16, dnsDomain: cluster.local}
`},
	})
}

func newAuthority(t *testing.T) (*x509.Certificate, *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return certificate, key
}

func (w *world) at(path string) string { return filepath.Join(w.root, path) }

func (w *world) mkdir(path string) {
	if err := os.MkdirAll(w.at(path), 0o755); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) write(path, content string) {
	w.mkdir(filepath.Dir(path))
	if err := os.WriteFile(w.at(path), []byte(content), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// host is a new muster on the host, as a process that has just been started.
func (w *world) host() *Host {
	w.changes, w.steps = nil, nil
	h, err := New(Config{
		Root: w.root, Programs: w.programs, Releases: releasetest.List(), BinDir: "/usr/local/bin", CNIBinDir: "/opt/cni/bin",
		Units: w.units, Runtime: w, Render: w.render, Run: w.runs, Connect: w.connect,
		Show:   func(s Step) { w.steps = append(w.steps, s) },
		Now:    w.clock,
		before: w.before,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return h
}

func (w *world) clock() time.Time {
	if !w.now.IsZero() {
		return w.now
	}
	return time.Now()
}

// before kills muster at its crashAt-th change, and nothing is changed by it from then on. A file that it was writing
// is left behind, half written.
func (w *world) before(what string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.changes = append(w.changes, what)
	switch {
	case w.crashAt == 0 || len(w.changes) < w.crashAt:
		return nil
	case len(w.changes) > w.crashAt:
		return errCrash
	}
	if path, ok := strings.CutPrefix(what, "write /"); ok {
		w.write(filepath.Join(filepath.Dir("/"+path), ".new-"+filepath.Base(path)+"-1234567"), "half")
	}
	return errCrash
}

func (w *world) request() JoinRequest {
	t, err := token.Parse(testToken)
	if err != nil {
		w.t.Fatal(err)
	}
	return JoinRequest{
		Endpoint: "192.168.64.2:443", Token: t, NodeName: nodeName, NodeIP: netip.MustParseAddr("192.168.64.200"), Timeout: 10 * time.Second,
		Discover: func(context.Context) (Found, error) { return Found{Endpoint: endpoint, CA: w.caPEM, How: "a pin"}, nil },
	}
}

func (w *world) join() error {
	_, err := w.host().Join(w.t.Context(), w.request())
	return err
}

func (w *world) leave() error {
	_, err := w.host().Leave(w.t.Context(), LeaveRequest{DrainTimeout: 5 * time.Second, Admin: w.cluster})
	return err
}

func (w *world) said() string {
	var b strings.Builder
	for _, s := range w.steps {
		fmt.Fprintf(&b, "%s %s: %s\n", s.Name, s.State, s.Text)
	}
	return b.String()
}

// render is a small copy of what a node's files are.
func (w *world) render(spec nodeconfig.Spec, self Self) ([]render.File, error) {
	files := []render.File{
		{Path: "/etc/kubernetes/kubelet/config.json", Mode: 0o644, Content: []byte("dns of " + spec.Cluster.CIDR)},
		{Path: "/etc/kubernetes/pki/ca.crt", Mode: 0o644, Content: spec.Cluster.CertificateAuthority},
		{Path: render.PathKubeProxyConfig, Mode: 0o644, Content: []byte("proxy of " + spec.Cluster.PodCIDR)},
		{Path: "/etc/systemd/system/kube-proxy.service", Mode: 0o644, Content: []byte("[Service]\n")},
		{Path: "/etc/systemd/system/kubelet.service", Mode: 0o644, Content: []byte("[Service]\n# " + self.Name + " " + self.IP.String())},
	}
	if self.OwnContainerd {
		files = append(files,
			render.File{Path: render.PathContainerdConfig, Mode: 0o644, Content: []byte("version = 3\n")},
			render.File{Path: "/etc/systemd/system/containerd.service", Mode: 0o644, Content: []byte("[Service]\n")})
	}
	args := "--config=…"
	if spec.Join.Token != "" {
		args += " --bootstrap-kubeconfig=…"
	}
	files = append(files, render.File{Path: "/etc/eks/kubelet/environment", Mode: 0o644, Content: []byte(args)})
	if spec.Join.Token != "" {
		files = append(files, render.File{Path: render.PathBootstrapKubeconfig, Mode: 0o600, Content: []byte("token: " + spec.Join.Token)})
	}
	return files, nil
}

// runs is what programs do.
func (w *world) runs(_ context.Context, program string, args ...string) (string, error) {
	w.run = append(w.run, filepath.Base(program)+" "+strings.Join(args, " "))
	if _, err := os.Stat(program); err != nil {
		return "", err
	}
	return "Kubernetes v1.36.3", nil
}

// Version makes the world the host's container runtime.
func (w *world) Version(ctx context.Context) (string, error) {
	if unit, err := w.units.Show(ctx, containerdUnit); w.containerd || err == nil && unit.Active() {
		return "containerd v2.2.1", nil
	}
	return "", errors.New("connection refused")
}

func (w *world) RemovePods(_ context.Context, since time.Time) (int, error) {
	n := w.pods
	w.removedSince = since
	w.pods = 0
	return n, nil
}

// connect is the way to the API server, which looks at the credential.
func (w *world) connect(config *rest.Config) (kubernetes.Interface, error) {
	client := w.cluster
	client.PrependReactor("create", "selfsubjectreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		review := &authenticationv1.SelfSubjectReview{}
		switch {
		case string(config.CAData) != string(w.caPEM):
			return true, nil, errors.New("x509: certificate signed by unknown authority")
		case config.BearerToken == "" && len(config.CertData) > 0:
			review.Status.UserInfo.Username = "system:node:" + nodeName
		case w.tokens[config.BearerToken]:
			review.Status.UserInfo.Username = "system:bootstrap:" + config.BearerToken[:6]
		default:
			return true, nil, apierrors.NewUnauthorized("Unauthorized")
		}
		return true, review, nil
	})
	return client, nil
}

// started is what programs do when systemd starts them.
func (w *world) started(unit string) {
	switch unit {
	case containerdUnit:
		w.write("/var/lib/containerd/metadata.db", "m")
		w.write("/run/containerd/containerd.sock", "s")
		w.write("/opt/containerd/lib/x", "x")
	case kubeletUnit:
		w.write(logindConfig, "[Login]\nInhibitDelayMaxSec=150\n")
		w.write("/proc/sys/vm/overcommit_memory", "1\n")
		w.write("/usr/libexec/kubernetes/kubelet-plugins/x", "x")
		w.write("/var/log/pods/x", "x")
		w.kubelet()
	case kubeProxyUnit:
		w.write("/proc/sys/net/ipv4/ip_forward", "1\n")
		w.write(closeWait, "3600\n")
	}
}

// tree is everything below the root, with what does not change from join to join.
func (w *world) tree() map[string]string {
	w.t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(w.root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, w.root)
		text := info.Mode().String()
		switch {
		case strings.HasPrefix(name, "/var/lib/kubelet/pki/kubelet-"), name == LedgerPath, strings.HasSuffix(name, "/.muster-pause"):
		case name == authority && string(mustRead(w.t, path)) == string(w.caPEM):
		case info.Mode().IsRegular():
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += " " + string(raw)
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " -> " + target
		}
		found[name] = text
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func mustRead(t *testing.T, path string) []byte {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}
