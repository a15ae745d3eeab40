// SPDX-License-Identifier: Apache-2.0

package nodeevidence

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	runtimev1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"muster.dev/muster/internal/node/imds"
)

// Probes look at what files do not tell. No probe sends a credential.
type Probes interface {
	// Answer reaches an API server by its URL, verifies it with authorities in PEM, and returns the time that it answers with.
	// Any answer is good: a server may refuse those without a credential.
	Answer(ctx context.Context, url string, authorities []byte) (time.Time, error)
	// SmallAnswer does the same with packets of at most [smallPacket] bytes, both ways.
	SmallAnswer(ctx context.Context, url string, authorities []byte) (time.Time, error)
	// Healthz asks for a URL of the kubelet on this host, which answers 200 if it is well.
	Healthz(ctx context.Context, url string) error
	// Runtime asks a container runtime for its name and version by the CRI.
	Runtime(ctx context.Context, socket string) (string, error)
	// Role asks the metadata service for the name of the instance's role; [imds.ErrNotFound] if it has none.
	Role(ctx context.Context) (string, error)
	// Free returns the bytes of the file system of a path that are free, and all that it has.
	Free(path string) (free, all uint64, err error)
}

// probeTime is how long one probe may take.
const probeTime = 5 * time.Second

// HostProbes are the probes of this host.
type HostProbes struct{}

// smallPacket is what each way of the Internet carries with the heads of IPv4 and TCP (RFC 9293, 3.7.1).
const smallPacket = 536

// Answer implements [Probes]. It takes no proxy.
func (HostProbes) Answer(ctx context.Context, url string, authorities []byte) (time.Time, error) {
	return answer(ctx, url, authorities, &net.Dialer{})
}

// SmallAnswer implements [Probes]. The kernel tells the server of the size as it connects.
func (HostProbes) SmallAnswer(ctx context.Context, url string, authorities []byte) (time.Time, error) {
	return answer(ctx, url, authorities, &net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
		var refused error
		if err := c.Control(func(fd uintptr) {
			refused = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, syscall.TCP_MAXSEG, smallPacket)
		}); err != nil {
			return err
		}
		return refused
	}})
}

// answer asks a server, and returns the time that it answers with.
func answer(ctx context.Context, url string, authorities []byte, dialer *net.Dialer) (time.Time, error) {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authorities)
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, DialContext: dialer.DialContext, MaxResponseHeaderBytes: 16 << 10}
	_, header, err := get(ctx, transport, url)
	if err != nil {
		return time.Time{}, err
	}
	at, err := http.ParseTime(header.Get("Date"))
	if err != nil {
		return time.Time{}, nil //nolint:nilerr // a server that tells no time was reached all the same
	}
	return at, nil
}

// Healthz implements [Probes].
func (HostProbes) Healthz(ctx context.Context, url string) error {
	status, _, err := get(ctx, &http.Transport{DisableKeepAlives: true, DialContext: (&net.Dialer{}).DialContext}, url)
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("it answers %d %s", status, http.StatusText(status))
	}
	return err
}

// get asks for a URL once, follows nothing, and returns the head of the answer.
func get(ctx context.Context, transport http.RoundTripper, url string) (status int, header http.Header, err error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s: %w", url, err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return 0, nil, fmt.Errorf("asking %s: %w", url, err)
	}
	return response.StatusCode, response.Header, response.Body.Close()
}

// Runtime implements [Probes].
func (HostProbes) Runtime(ctx context.Context, socket string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	dialer := func(ctx context.Context, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
	connection, err := grpc.NewClient("passthrough:///runtime", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(dialer))
	if err != nil {
		return "", fmt.Errorf("reaching the container runtime: %w", err)
	}
	defer func() { _ = connection.Close() }()
	answer, err := runtimev1.NewRuntimeServiceClient(connection).Version(ctx, &runtimev1.VersionRequest{})
	if err != nil {
		return "", fmt.Errorf("asking the container runtime: %w", err)
	}
	return answer.GetRuntimeName() + " " + answer.GetRuntimeVersion(), nil
}

// Role implements [Probes].
func (HostProbes) Role(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	return imds.NewClient("").Role(ctx)
}

// Free implements [Probes].
func (HostProbes) Free(path string) (free, all uint64, err error) {
	var is syscall.Statfs_t
	if err := syscall.Statfs(path, &is); err != nil {
		return 0, 0, fmt.Errorf("asking for the free space of %s: %w", path, err)
	}
	return is.Bavail * uint64(is.Bsize), is.Blocks * uint64(is.Bsize), nil //nolint:gosec // G115: a block has a size
}

// hangs reports whether a server could be connected to, and did not answer.
func hangs(err error) bool {
	timeout, ok := errors.AsType[net.Error](err)
	return ok && timeout.Timeout() && codeOf(err) == codeFailed
}

// codeFailed is the word for any other failure.
const codeFailed = "Failed"

// codeOf is the word for what keeps somebody from a server; [codeFailed] for what has no word of its own.
func codeOf(err error) string {
	if lookup, ok := errors.AsType[*net.DNSError](err); ok {
		if lookup.IsNotFound {
			return "NoSuchHost"
		}
		return "NoNameServer"
	}
	if _, ok := errors.AsType[x509.UnknownAuthorityError](err); ok {
		return "UnknownAuthority"
	}
	if _, ok := errors.AsType[x509.HostnameError](err); ok {
		return "NameMismatch"
	}
	if invalid, ok := errors.AsType[x509.CertificateInvalidError](err); ok && invalid.Reason == x509.Expired {
		return "NotValidNow"
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && failed.Op == "dial" {
		switch {
		case errors.Is(err, syscall.ECONNREFUSED):
			return "Refused"
		case failed.Timeout():
			return "Timeout"
		case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
			return "Unreachable"
		}
	}
	return codeFailed
}
