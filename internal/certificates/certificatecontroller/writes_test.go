// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// usual notes that it was asked.
type usual struct{ asked int }

var errUsual = errors.New("client-go was asked")

func (u *usual) UpdateApproval(context.Context, string, *certificatesv1.CertificateSigningRequest, metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	u.asked++
	return nil, errUsual
}

func (u *usual) UpdateStatus(context.Context, *certificatesv1.CertificateSigningRequest, metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	u.asked++
	return nil, errUsual
}

func writer(t *testing.T, config *rest.Config) (*writes, *usual) {
	t.Helper()
	w, err := written(config, fake.NewClientset(), slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	direct, ok := w.(*writes)
	if !ok {
		t.Fatalf("requests are written by %T", w)
	}
	u := &usual{}
	direct.usual = u
	return direct, u
}

func signingRequest() *certificatesv1.CertificateSigningRequest {
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "csr-1", UID: "uid", ResourceVersion: "7"},
		Status:     certificatesv1.CertificateSigningRequestStatus{Certificate: []byte("certificate")},
	}
}

// The server is behind a path, and wants a token that is in a file, as in a pod.
func TestRequestsAreWritten(t *testing.T) {
	codec := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	var paths []string
	_, config, opened := serve(t, func(w http.ResponseWriter, r *http.Request) {
		paths = append(paths, r.Method+" "+r.URL.Path)
		for name, want := range map[string]string{
			"Authorization": "Bearer secret", "User-Agent": "test", "Accept": runtime.ContentTypeProtobuf, "Content-Type": runtime.ContentTypeProtobuf,
		} {
			if got := r.Header.Get(name); got != want {
				t.Errorf("%s is %q", name, got)
			}
		}
		raw, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		o, _, err := codec.Decode(raw, nil, nil)
		csr, ok := o.(*certificatesv1.CertificateSigningRequest)
		if err != nil || !ok || csr.ResourceVersion != "7" || string(csr.Status.Certificate) != "certificate" {
			t.Errorf("%v was written, %v", o, err)
			return
		}
		csr.ResourceVersion = "8"
		csr.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"))
		if err := codec.Encode(csr, w); err != nil {
			t.Error(err)
		}
	})
	config.Host += "/clusters/a/"
	config.BearerTokenFile = filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(config.BearerTokenFile, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	w, usual := writer(t, config)
	in := signingRequest()
	approved, err := w.UpdateApproval(t.Context(), "csr-1", in, metav1.UpdateOptions{})
	if err != nil || approved.ResourceVersion != "8" || approved.Name != "csr-1" {
		t.Errorf("%v, %v", approved, err)
	}
	issued, err := w.UpdateStatus(t.Context(), in, metav1.UpdateOptions{})
	if err != nil || issued.ResourceVersion != "8" || string(issued.Status.Certificate) != "certificate" {
		t.Errorf("%v, %v", issued, err)
	}
	const at = "PUT /clusters/a/apis/certificates.k8s.io/v1/certificatesigningrequests/csr-1/"
	if len(paths) != 2 || paths[0] != at+"approval" || paths[1] != at+"status" {
		t.Errorf("%q were asked", paths)
	}
	if usual.asked > 0 || opened.Load() != 1 || in.Kind != "" || in.ResourceVersion != "7" {
		t.Errorf("client-go was asked %d times, %d connections, what was written became %v", usual.asked, opened.Load(), in)
	}
}

func TestWhatIsNotWrittenGoesToClientGo(t *testing.T) {
	for name, handle := range map[string]http.HandlerFunc{
		"conflict": func(w http.ResponseWriter, r *http.Request) {
			raw, _ := io.ReadAll(r.Body)
			w.WriteHeader(http.StatusConflict)
			_, _ = w.Write(raw)
		},
		"another kind": func(w http.ResponseWriter, _ *http.Request) {
			status := &metav1.Status{Status: metav1.StatusSuccess}
			status.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "Status"})
			_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(status, w)
		},
		"another request": func(w http.ResponseWriter, _ *http.Request) {
			csr := signingRequest()
			csr.UID = "another"
			csr.SetGroupVersionKind(certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest"))
			_ = protobuf.NewSerializer(scheme.Scheme, scheme.Scheme).Encode(csr, w)
		},
		"too busy":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) },
		"redirected": func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/", http.StatusTemporaryRedirect) },
		"empty":      func(http.ResponseWriter, *http.Request) {},
		"json": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"kind":"CertificateSigningRequest"}`))
		},
		"away": func(w http.ResponseWriter, _ *http.Request) {
			if c, _, err := http.NewResponseController(w).Hijack(); err == nil {
				_ = c.Close()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, config, _ := serve(t, handle)
			w, usual := writer(t, config)
			if _, err := w.UpdateApproval(t.Context(), "csr-1", signingRequest(), metav1.UpdateOptions{}); !errors.Is(err, errUsual) {
				t.Error(err)
			}
			if _, err := w.UpdateStatus(t.Context(), signingRequest(), metav1.UpdateOptions{}); !errors.Is(err, errUsual) || usual.asked != 2 {
				t.Error(err)
			}
		})
	}
}

// Requests that only client-go knows how to make are left to it.
func TestSomeServersAreReachedByClientGoAlone(t *testing.T) {
	for name, change := range map[string]func(*rest.Config){
		"http":          func(c *rest.Config) { c.Host = "http://cluster.example" },
		"proxy":         func(c *rest.Config) { c.Proxy = func(*http.Request) (*url.URL, error) { return nil, nil } },
		"dialer":        func(c *rest.Config) { c.Dial = new(net.Dialer).DialContext },
		"transport":     func(c *rest.Config) { c.Transport = http.DefaultTransport },
		"wrapper":       func(c *rest.Config) { c.Wrap(func(rt http.RoundTripper) http.RoundTripper { return rt }) },
		"program":       func(c *rest.Config) { c.ExecProvider = &clientcmdapi.ExecConfig{} },
		"auth provider": func(c *rest.Config) { c.AuthProvider = &clientcmdapi.AuthProviderConfig{} },
		"none of these": func(*rest.Config) {},
	} {
		config := &rest.Config{Host: "https://cluster.example"}
		change(config)
		w, err := written(config, fake.NewClientset(), slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if _, direct := w.(*writes); direct != (name == "none of these") || direct != (mostWorkers(w) == 0) {
			t.Errorf("%s: written by %T, with up to %d workers", name, w, mostWorkers(w))
		}
	}
}
