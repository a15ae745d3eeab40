// SPDX-License-Identifier: Apache-2.0

package nodecerts

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/client-go/util/certificate"
)

func TestRotate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := Read(w.dir, time.Now())
	restarts := 0
	c := w.config()
	c.Restart = func(context.Context) error { restarts++; return nil }
	rotated, err := Rotate(t.Context(), c)
	if err != nil || len(rotated) != 2 || restarts != 1 {
		t.Fatalf("%v (%v), %d restarts", rotated, err, restarts)
	}
	for i, after := range Read(w.dir, time.Now()) {
		if len(after.Problems) > 0 || after.Serial == before[i].Serial || after.Target != rotated[i].File || after.Serial != rotated[i].Serial {
			t.Errorf("after %+v comes %+v", before[i], after)
		}
		if !regexp.MustCompile(`^` + regexp.QuoteMeta(w.dir) + `/kubelet-(client|server)-\d{4}(-\d\d){5}\.pem$`).MatchString(after.Target) {
			t.Errorf("the file's name is %s", after.Target)
		}
	}
	for i, want := range [][]certificatesv1.KeyUsage{{"digital signature", "client auth"}, {"digital signature", "server auth"}} {
		if diff := cmp.Diff(want, w.requests[i].Spec.Usages); diff != "" || w.requests[i].Spec.ExpirationSeconds != nil {
			t.Errorf("usages (-want +got):\n%s%v", diff, w.requests[i].Spec.ExpirationSeconds)
		}
	}
	// In the same second, too.
	if _, err := Rotate(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(w.dir, "*"))
	if err != nil || len(files) != 8 { // three files and a link of each
		t.Errorf("the directory holds %v (%v)", files, err)
	}
}

// A refusal leaves everything as it was.
func TestRotateRefuses(t *testing.T) {
	t.Parallel()
	other := newAuthority(t, "other")
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		change func(*world, *RotateConfig)
		want   string
	}{
		"denied":      {func(w *world, _ *RotateConfig) { w.verdict = certificatesv1.CertificateDenied }, "is Denied: PolicyDenied: the names are another machine's"},
		"not issued":  {func(w *world, c *RotateConfig) { w.verdict, c.Timeout = "pending", 600*time.Millisecond }, "is not issued after 600ms"},
		"another key": {func(w *world, _ *RotateConfig) { w.key = key.Public() }, "it is for another key"},
		"another name": {func(w *world, _ *RotateConfig) {
			w.change = func(c *x509.Certificate) { c.Subject.CommonName = "system:node:b" }
		}, "it names CN=system:node:b"},
		"another address": {func(w *world, c *RotateConfig) {
			c.Kinds, w.change = []Kind{Serving}, func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(1, 2, 3, 4)} }
		}, "[1.2.3.4], not for"},
		"a name more": {func(w *world, _ *RotateConfig) {
			w.change = func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "kubernetes") }
		}, "it is for [kubernetes]"},
		"an authority": {func(w *world, _ *RotateConfig) {
			w.change = func(c *x509.Certificate) { c.IsCA, c.BasicConstraintsValid = true, true }
		}, "it is an authority's"},
		"another usage": {func(w *world, _ *RotateConfig) { w.change = func(c *x509.Certificate) { c.ExtKeyUsage = nil } }, "it is not a client certificate"},
		"over": {func(w *world, _ *RotateConfig) {
			w.change = func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }
		}, "the clock says"},
		"a stranger's":  {func(w *world, _ *RotateConfig) { w.published = []*x509.Certificate{other.certificate} }, "no authority that the cluster publishes signed it"},
		"somebody else": {func(w *world, _ *RotateConfig) { w.user = "system:anonymous" }, `takes us for "system:anonymous"`},
		"expired": {func(w *world, _ *RotateConfig) {
			w.put(Client, w.pair(Client, func(c *x509.Certificate) { c.NotAfter = time.Now().Add(-time.Second) }))
		}, "it needs a bootstrap token"},
		"no client certificate": {func(w *world, _ *RotateConfig) { _ = os.Remove(filepath.Join(w.dir, Client.link())) }, "the node has not joined a cluster"},
		"a person's": {func(w *world, _ *RotateConfig) {
			w.put(Client, w.pair(Client, func(c *x509.Certificate) { c.Subject.CommonName = "jane" }))
		}, `is for "jane", which is not a node`},
		"no directory":  {func(_ *world, c *RotateConfig) { c.Dir = "/does/not/exist" }, "opening the kubelet's certificates"},
		"no kubeconfig": {func(_ *world, c *RotateConfig) { c.Kubeconfig = "/does/not/exist" }, "reading the kubelet's kubeconfig"},
		"unverified": {func(w *world, _ *RotateConfig) {
			raw, err := os.ReadFile(w.kubeconfig)
			if err != nil {
				w.t.Error(err)
			}
			raw = regexp.MustCompile(`certificate-authority: "[^"]*"`).ReplaceAll(raw, []byte("insecure-skip-tls-verify: true"))
			write(w.t, w.kubeconfig, raw, 0o600)
		}, "does not verify the API server"},
		"no link": {func(w *world, _ *RotateConfig) {
			_ = os.Remove(filepath.Join(w.dir, Serving.link()))
			write(w.t, filepath.Join(w.dir, Serving.link()), w.pair(Serving, nil), 0o600)
		}, "is a file and not a link"},
		"while another does": {func(w *world, c *RotateConfig) {
			unlock, err := c.lock()
			if err != nil {
				w.t.Error(err)
			}
			w.t.Cleanup(unlock)
		}, "being replaced by another muster"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.config()
			c.Restart = func(context.Context) error { t.Error("the kubelet is restarted"); return nil }
			test.change(w, &c)
			before, _ := filepath.Glob(filepath.Join(w.dir, "*"))
			_, err := Rotate(t.Context(), c)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if after, _ := filepath.Glob(filepath.Join(w.dir, "*")); !cmp.Equal(before, after) {
				t.Errorf("before %v, after %v", before, after)
			}
		})
	}
}

// The API server that publishes the signing authorities has the last word, and one that does is not an obstacle.
func TestRotateKnowsTheAuthority(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.published = []*x509.Certificate{newAuthority(t, "kubelet-0").certificate, w.certificate}
	if _, err := Rotate(t.Context(), w.config()); err != nil {
		t.Error(err)
	}
}

func TestRotateSaysThatTheKubeletWasNotRestarted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := w.config()
	c.Restart = func(context.Context) error { return errors.New("nobody answers") }
	if rotated, err := Rotate(t.Context(), c); err == nil || !strings.Contains(err.Error(), "goes on with the old ones until it is restarted: nobody answers") || len(rotated) != 2 {
		t.Errorf("got %v, %v", rotated, err)
	}
}

// When the second cannot be put in its place, the first has been already, and that is said.
func TestRotateSaysWhatWasReplacedWhenTheRestWasNot(t *testing.T) {
	t.Parallel()
	for _, failing := range Kinds() {
		t.Run(string(failing), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			c := w.config()
			c.Restart = func(context.Context) error { t.Error("the kubelet is restarted"); return nil }
			writes := 0
			c.step = func(step string) {
				if step != "write" {
					return
				}
				writes++
				if failing == Serving && writes == 1 {
					return
				}
				if err := os.MkdirAll(filepath.Join(w.dir, failing.updated(), "in-the-way"), 0o700); err != nil {
					t.Error(err)
				}
			}
			rotated, err := Rotate(t.Context(), c)
			want := "client certificate: "
			if failing == Serving {
				want = "the client certificate was replaced (" + w.dir
			}
			if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v", err)
			}
			if failing == Serving && (len(rotated) != 1 || rotated[0].Kind != Client || !strings.Contains(err.Error(), "run it again with --server")) {
				t.Errorf("got %v, %v", rotated, err)
			}
			if failing == Client && (len(rotated) != 0 || !strings.Contains(err.Error(), "nothing was replaced")) {
				t.Errorf("got %v, %v", rotated, err)
			}
		})
	}
}

// The directory can be read by every user, and so locked: that keeps no rotation from going on.
func TestRotateIsNotKeptOutByALockOnTheDirectory(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir, err := os.Open(w.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = dir.Close() }()
	if err := unix.Flock(int(dir.Fd()), unix.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if _, err := Rotate(t.Context(), w.config()); err != nil {
		t.Error(err)
	}
}

func TestWhatSystemctlSaysIsOneLine(t *testing.T) {
	t.Parallel()
	failed := errors.New("exit status 1")
	if got := unitError(failed, []byte("Job failed.\nSee \"systemctl status\".\n")).Error(); got != `systemctl restart kubelet.service: exit status 1: Job failed. See "systemctl status".` {
		t.Error(got)
	}
	if got := unitError(failed, nil).Error(); !strings.HasSuffix(got, "it said nothing") {
		t.Error(got)
	}
	if got := unitError(failed, bytes.Repeat([]byte("ü"), 300)).Error(); len(got) > 300 || !utf8.ValidString(got) {
		t.Error(got)
	}
}

// A rotation that is killed at any step leaves pairs that upstream's store reads, behind links that are always there,
// and the next rotation goes through.
func TestRotateKilledAtEachStep(t *testing.T) {
	t.Parallel()
	for at := 0; ; at++ {
		w := newWorld(t)
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), envKillAt+"="+strconv.Itoa(at), envDir+"="+w.dir, envKubeconfig+"="+w.kubeconfig)
		out, err := cmd.CombinedOutput()
		step := string(bytes.TrimSpace(out))
		exit, killed := errors.AsType[*exec.ExitError](err)
		if killed && exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
			t.Fatalf("step %d: %v\n%s", at, err, out)
		}
		for _, r := range Read(w.dir, time.Now()) {
			if len(r.Problems) > 0 {
				t.Errorf("killed before %q: %v", step, r.Problems)
			}
			store, err := certificate.NewFileStore(r.Kind.prefix(), w.dir, w.dir, "", "")
			if err != nil {
				t.Fatal(err)
			}
			if current, err := store.Current(); err != nil || fmt.Sprintf("%x", current.Leaf.SerialNumber) != r.Serial {
				t.Errorf("killed before %q, upstream reads %v", step, err)
			}
		}
		if _, err := Rotate(t.Context(), w.config()); err != nil {
			t.Errorf("killed before %q, the next rotation: %v", step, err)
		}
		if !killed {
			if at != 11 { // five steps for each of two, and the restart
				t.Errorf("there were %d steps", at)
			}
			return
		}
	}
}

func TestAskAgent(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "restart-kubelet")
	done := make(chan error, 1)
	go func() { done <- askAgent(t.Context(), path) }()
	deadline := time.Now().Add(time.Minute)
	for {
		info, err := os.Lstat(path)
		if err == nil {
			if info.Mode() != 0o600 {
				t.Errorf("the request has mode %v", info.Mode())
			}
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("nobody asks")
		}
	}
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	default:
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := askAgent(t.Context(), "/does/not/exist/restart-kubelet"); err == nil {
		t.Error("where there is no agent, one answers")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := askAgent(ctx, path); err == nil || !strings.Contains(err.Error(), "has not answered") {
		t.Errorf("an agent that does nothing: %v", err)
	}
}
