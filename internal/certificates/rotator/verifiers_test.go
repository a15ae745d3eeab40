// SPDX-License-Identifier: Apache-2.0

package rotator

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"muster.dev/muster/internal/certificates/bundle"
	"muster.dev/muster/internal/certificates/rotation"
)

func certificatePEM(certificate *x509.Certificate) string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw}))
}

func fakeClient(t *testing.T, objects ...client.Object) client.Client {
	t.Helper()
	return fake.NewClientBuilder().WithObjects(objects...).Build() // of client-go's own scheme
}

// TestClientProbe asks a server that trusts what is in a bundle, as the API server does.
func TestClientProbe(t *testing.T) {
	s := newStage(t)
	if err := s.keys.StartRotation(time.Now()); err != nil {
		t.Fatal(err)
	}
	var trusted atomic.Pointer[x509.CertPool]
	trust := func(names ...string) {
		pool := x509.NewCertPool()
		for _, name := range names {
			ca, err := s.keys.KubeletAuthority(name)
			if err != nil {
				t.Fatal(err)
			}
			pool.AddCert(ca)
		}
		trusted.Store(pool)
	}
	odd := false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if odd {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, err := r.TLS.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: trusted.Load(), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
		if err != nil {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	server.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	caFile := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(caFile, []byte(certificatePEM(server.Certificate())), 0o600); err != nil {
		t.Fatal(err)
	}
	probe := &clientProbe{keys: s.keys, server: server.URL, caFile: caFile}
	r := rotation.Start("kubelet-1", "kubelet-2", time.Now())
	check := func(phase rotation.Phase, want string) {
		t.Helper()
		r.Phase = phase
		if got := probe.pending(t.Context(), r); !strings.Contains(got, want) || (want == "") != (got == "") {
			t.Errorf("in %s: %q, not %q", phase, got, want)
		}
	}
	trust("kubelet-1")
	check(rotation.Trust, "does not accept client certificates of kubelet-2")
	trust("kubelet-1", "kubelet-2")
	check(rotation.Trust, "")
	check(rotation.Withdraw, "still accepts client certificates of kubelet-1")
	trust("kubelet-2")
	check(rotation.Withdraw, "")
	trust("kubelet-2", "cluster")
	r.Old = "cluster" // it goes on to sign for components
	check(rotation.Withdraw, "")
	odd = true
	check(rotation.Withdraw, "503")
	server.Close()
	check(rotation.Withdraw, "cannot ask")
	odd = false
	r.New = "kubelet-9"
	check(rotation.Trust, "kubelet-9")
}

// apiServer looks at its file as upstream does: when it calls a kubelet, and not twice in five minutes.
type apiServer struct {
	started       string
	file, holds   string
	looked        time.Time
	updates, same int
	calls         int
	broken        bool
}

func (a *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	recorder := httptest.NewRecorder()
	switch {
	case a.broken:
		recorder.WriteHeader(http.StatusInternalServerError)
	case r.URL.Path == "/metrics":
		_, _ = fmt.Fprintf(recorder, "# HELP x\nother 1\nprocess_start_time_seconds %s\nrest_client_transport_ca_reload_total{reason=\"unchanged\",result=\"success\"} %d\n"+
			"rest_client_transport_ca_reload_total{reason=\"updated\",result=\"success\"} %d\nrest_client_transport_ca_reload_total{reason=\"read_error\",result=\"failure\"} %d\n", a.started, a.same, a.updates, a.calls)
	case strings.HasPrefix(r.URL.Path, "/api/v1/nodes/node/proxy/"):
		a.calls++
		if time.Since(a.looked) >= 5*time.Minute {
			a.looked = time.Now()
			if a.holds != a.file {
				a.holds = a.file
				a.updates++
			} else {
				a.same++
			}
		}
		recorder.WriteHeader(http.StatusBadGateway)
	}
	return recorder.Result(), nil
}

func TestServingReader(t *testing.T) {
	r := rotation.Start("kubelet-1", "kubelet-2", time.Date(1999, 12, 31, 0, 0, 0, 0, time.UTC))
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}
	run := func(name string, objects []client.Object, test func(*testing.T, *servingReader, *apiServer)) {
		t.Run(name, func(t *testing.T) {
			api := fakeClient(t, objects...)
			synctest.Test(t, func(t *testing.T) {
				a := &apiServer{started: "1.5e+09", file: "old", holds: "old", looked: time.Now().Add(-time.Minute)}
				test(t, &servingReader{http: &http.Client{Transport: a}, base: "http://api", api: api}, a)
			})
		})
	}
	// until looks as the service does, and returns how long it took until nothing was pending.
	until := func(t *testing.T, v *servingReader, r rotation.Rotation) time.Duration {
		t.Helper()
		from := time.Now()
		for v.pending(t.Context(), r) != "" {
			if time.Since(from) > time.Hour {
				t.Fatal("it waits forever")
			}
			<-time.After(verifyInterval)
		}
		return time.Since(from)
	}
	run("waits until the file has been read", []client.Object{node}, func(t *testing.T, v *servingReader, a *apiServer) {
		t.Helper()
		a.file = "both"
		if took := until(t, v, r); a.holds != "both" || took > 5*time.Minute {
			t.Errorf("after %s the API server holds %q", took, a.holds)
		}
		replace := r
		replace.Phase, replace.Since, replace.Clear = rotation.Replace, time.Now(), time.Now()
		if text := v.pending(t.Context(), replace); text != "" {
			t.Errorf("the same file: %s", text)
		}
		a.file = "new"
		withdraw := replace
		withdraw.Phase, withdraw.Clear = rotation.Withdraw, time.Time{}
		if until(t, v, withdraw); a.holds != "new" {
			t.Errorf("in the end it holds %q", a.holds)
		}
	})
	run("what was read at the same moment may be the old file", []client.Object{node}, func(t *testing.T, v *servingReader, a *apiServer) {
		t.Helper()
		a.file = "both"
		if v.pending(t.Context(), r) == "" {
			t.Fatal("it believes without a look")
		}
		a.looked, a.same = time.Now(), 1 // a look that began before the file was written is counted now
		if took := until(t, v, r); a.holds != "both" || took < 4*time.Minute {
			t.Errorf("after %s the API server holds %q", took, a.holds)
		}
	})
	run("an API server that starts reads it", []client.Object{node}, func(t *testing.T, v *servingReader, a *apiServer) {
		t.Helper()
		for range 3 {
			v.pending(t.Context(), r)
			<-time.After(verifyInterval)
		}
		a.started = "1.6e+09"
		if took := until(t, v, r); took != 0 {
			t.Errorf("after another %s", took)
		}
	})
	run("no kubelet", nil, func(t *testing.T, v *servingReader, a *apiServer) {
		t.Helper()
		if took := until(t, v, r); took < 5*time.Minute || a.calls != 0 {
			t.Errorf("after %s", took)
		}
		if err := v.api.Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}}); err != nil {
			t.Fatal(err)
		}
		a.file = "both"
		if v.pending(t.Context(), r) == "" && a.holds != "both" {
			t.Error("the first kubelet that comes is not asked")
		}
		if until(t, v, r); a.holds != "both" {
			t.Errorf("it holds %q", a.holds)
		}
	})
	run("does not answer", []client.Object{node}, func(t *testing.T, v *servingReader, a *apiServer) {
		t.Helper()
		a.broken = true
		v.pending(t.Context(), r)
		<-time.After(time.Hour)
		if text := v.pending(t.Context(), r); !strings.Contains(text, "500") {
			t.Errorf("it says %q", text)
		}
	})
}

func TestDelegatedAuthenticationForgets(t *testing.T) {
	s := newStage(t)
	if err := s.keys.StartRotation(time.Now()); err != nil {
		t.Fatal(err)
	}
	var all []*x509.Certificate
	for _, name := range []string{"kubelet-1", "kubelet-2", "cluster"} {
		ca, err := s.keys.KubeletAuthority(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, ca)
	}
	published := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "extension-apiserver-authentication"},
		Data:       map[string]string{"client-ca-file": string(bundle.PEM(all...)), "requestheader-client-ca-file": "kept"},
	}
	api := fakeClient(t, published)
	d := delegated{keys: s.keys, api: api}
	r := rotation.Start("kubelet-1", "kubelet-2", time.Now())
	expect := func(phase rotation.Phase, want ...*x509.Certificate) {
		t.Helper()
		r.Phase = phase
		if text := d.pending(t.Context(), r); text != "" {
			t.Errorf("in %s: %s", phase, text)
		}
		var got corev1.ConfigMap
		if err := api.Get(t.Context(), client.ObjectKeyFromObject(published), &got); err != nil {
			t.Fatal(err)
		}
		if got.Data["client-ca-file"] != string(bundle.PEM(want...)) || got.Data["requestheader-client-ca-file"] != "kept" {
			t.Errorf("in %s it is %v", phase, got.Data)
		}
	}
	expect(rotation.Replace, all...)
	r.Old = "cluster"
	expect(rotation.Withdraw, all...)
	r.Old = "kubelet-1"
	expect(rotation.Withdraw, all[1:]...)
	expect(rotation.Withdraw, all[1:]...)
	if text := (delegated{keys: s.keys, api: fakeClient(t)}).pending(t.Context(), r); text != "" {
		t.Errorf("nothing is published: %s", text)
	}
	broken := published.DeepCopy()
	broken.Data["client-ca-file"] = "words"
	if text := (delegated{keys: s.keys, api: fakeClient(t, broken)}).pending(t.Context(), r); text == "" {
		t.Error("what cannot be read is taken for clean")
	}
}
