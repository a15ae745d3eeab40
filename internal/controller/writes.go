// SPDX-License-Identifier: Apache-2.0

package controller

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"muster.dev/muster/internal/certificates"
)

// writes are the two writes that every request takes. They go over connections of their own, and past most of client-go; whatever is
// not answered with the object that was written is written anew by client-go, which knows about refusals, retries and outages. If the
// first did reach the API server, the second is a conflict, and the request is read and judged again.
type writes struct {
	usual   certificates.Writer
	through http.RoundTripper
	server  *url.URL
	agent   string
	codec   *protobuf.Serializer
	logger  *slog.Logger
}

// written returns how requests are written: by client-go alone if it reaches the API server in a way that only it knows.
func written(config *rest.Config, client kubernetes.Interface, logger *slog.Logger) (certificates.Writer, error) {
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
	return &writes{usual, through, server, config.UserAgent, protobuf.NewSerializer(scheme.Scheme, scheme.Scheme), logger}, nil
}

// UpdateApproval implements certificates.Writer.
func (w *writes) UpdateApproval(ctx context.Context, name string, csr *certificatesv1.CertificateSigningRequest, o metav1.UpdateOptions) (*certificatesv1.CertificateSigningRequest, error) {
	out, err := w.put(ctx, name, "approval", csr)
	if err != nil {
		w.logger.DebugContext(ctx, "approval is written by client-go", "csr", name, "error", err)
		return w.usual.UpdateApproval(ctx, name, csr, o)
	}
	return out, nil
}

// UpdateStatus implements certificates.Writer.
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
	kind := certificatesv1.SchemeGroupVersion.WithKind("CertificateSigningRequest")
	typed := *csr
	typed.SetGroupVersionKind(kind)
	var body bytes.Buffer
	if err := w.codec.Encode(&typed, &body); err != nil {
		return nil, err
	}
	r := (&http.Request{
		Method:        http.MethodPut,
		URL:           &url.URL{Scheme: w.server.Scheme, Host: w.server.Host, Path: w.server.Path + "/" + name + "/" + subresource},
		Header:        http.Header{"Content-Type": {runtime.ContentTypeProtobuf}, "Accept": {runtime.ContentTypeProtobuf}, "User-Agent": {w.agent}},
		ContentLength: int64(body.Len()), Body: io.NopCloser(&body),
	}).WithContext(ctx)
	answer, err := w.through.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, errors.New(answer.Status)
	}
	raw := make([]byte, answer.ContentLength)
	if _, err := io.ReadFull(answer.Body, raw); err != nil {
		return nil, err
	}
	o, _, err := w.codec.Decode(raw, &kind, &certificatesv1.CertificateSigningRequest{})
	if err != nil {
		return nil, err
	}
	out, ok := o.(*certificatesv1.CertificateSigningRequest)
	if !ok || out.UID != csr.UID {
		return nil, errors.New("the answer is another object")
	}
	return out, nil
}
