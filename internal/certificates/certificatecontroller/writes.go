// SPDX-License-Identifier: Apache-2.0

package certificatecontroller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates/csrcontroller"
)

// writes are the two writes that every request takes. They go over connections of their own, and past most of
// client-go; whatever is not answered with the object that was written is written anew by client-go, which knows about
// refusals, retries and outages. If the first did reach the API server, the second is a conflict, and the request is
// read and judged again.
type writes struct {
	usual   csrcontroller.Writer
	through http.RoundTripper
	server  *url.URL
	agent   string
	codec   *protobuf.Serializer
	logger  *slog.Logger
	spare   sync.Pool
}

// written returns how requests are written: by client-go alone if it reaches the API server in a way that only it
// knows.
func written(config *rest.Config, client kubernetes.Interface, logger *slog.Logger) (csrcontroller.Writer, error) {
	config = rest.CopyConfig(config)
	config.NextProtos = []string{"http/1.1"}
	usual := client.CertificatesV1().CertificateSigningRequests()
	server, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	proxy, err := http.ProxyFromEnvironment(&http.Request{URL: server})
	if err != nil || proxy != nil || server.Scheme != "https" || config.Proxy != nil || config.Dial != nil || config.Transport != nil ||
		config.WrapTransport != nil || config.ExecProvider != nil || config.AuthProvider != nil {
		return usual, nil //nolint:nilerr // client-go says what is wrong with the proxy
	}
	server.Path = strings.TrimSuffix(server.Path, "/") + "/apis/certificates.k8s.io/v1/certificatesigningrequests"
	through, err := rest.HTTPWrappersForConfig(config, &direct{config: config})
	if err != nil {
		return nil, err
	}
	return &writes{
		usual: usual, through: through, server: server, agent: config.UserAgent, codec: protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), logger: logger,
	}, nil
}

// UpdateApproval implements csrcontroller.Writer.
func (w *writes) UpdateApproval(ctx context.Context, name string, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	out, err := w.put(ctx, name, "approval", csr)
	if err != nil {
		w.logger.DebugContext(ctx, "approval is written by client-go", "csr", name, "error", err)
		return w.usual.UpdateApproval(ctx, name, csr, o)
	}
	return out, nil
}

// UpdateStatus implements csrcontroller.Writer.
func (w *writes) UpdateStatus(ctx context.Context, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	out, err := w.put(ctx, csr.Name, "status", csr)
	if err != nil {
		w.logger.DebugContext(ctx, "status is written by client-go", "csr", csr.Name, "error", err)
		return w.usual.UpdateStatus(ctx, csr, o)
	}
	return out, nil
}

// put returns the object as it stands in the cluster after that.
func (w *writes) put(ctx context.Context, name, subresource string, csr *certificatesv1.CertificateSigningRequest) (*certificatesv1.CertificateSigningRequest, error) {
	out, ok := w.spare.Get().(*encoded)
	if !ok {
		out = &encoded{}
	}
	defer w.spare.Put(out) // by then it has been sent
	out.bytes = nil
	typed := *csr
	typed.SetGroupVersionKind(kind())
	if err := w.codec.EncodeWithAllocator(&typed, out, &out.memory); err != nil {
		return nil, err
	}
	r := (&http.Request{
		Method:        http.MethodPut,
		URL:           &url.URL{Scheme: w.server.Scheme, Host: w.server.Host, Path: w.server.Path + "/" + name + "/" + subresource},
		Header:        http.Header{"Content-Type": {runtime.ContentTypeProtobuf}, "Accept": {runtime.ContentTypeProtobuf}, "User-Agent": {w.agent}},
		ContentLength: int64(len(out.bytes)), Body: io.NopCloser(bytes.NewReader(out.bytes)),
	}).WithContext(ctx)
	answer, err := w.through.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	written, err := answered(answer.Body)
	switch {
	case err != nil:
		return nil, err
	case written.UID != csr.UID:
		return nil, errors.New("the answer is another object")
	}
	written.Spec = csr.Spec // which nobody can change (upstream's pkg/registry/certificates/certificates/strategy.go)
	return written, nil
}

// encoded is an object as it is sent, in memory that is used again.
type encoded struct {
	memory runtime.Allocator
	bytes  []byte
}

// Write keeps what the codec wrote where it did so, in memory. It writes once.
func (e *encoded) Write(p []byte) (int, error) {
	if e.bytes != nil {
		return 0, errors.New("the codec writes in parts")
	}
	e.bytes = p
	return len(p), nil
}

func kind() schema.GroupVersionKind {
	return certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
}
