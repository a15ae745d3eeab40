// SPDX-License-Identifier: Apache-2.0

package controlsocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/steps"
)

// ErrNotRunning means that no service listens on this state directory.
var ErrNotRunning = errors.New("no service runs on this state directory")

// ErrSlow means that a service listens, and has not answered within clientTimeout.
var ErrSlow = fmt.Errorf("the service runs and has not answered within %s; this host may be busy: try again, or look at the log of the service", clientTimeout)

// clientTimeout is how long a service may take to answer the command line.
const clientTimeout = 20 * time.Second

// queuePause is the pause before a connection is tried again for which there was no room.
const queuePause = 10 * time.Millisecond

// Client asks a running service.
type Client struct{ http http.Client }

// NewClient asks the service of a state directory. Nothing is asked yet.
func NewClient(dir statedir.Dir) *Client {
	return &Client{http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx, dir.Socket()) },
		},
	}}
}

// dial connects to a socket. While the queue of connections that the service has not accepted is full, it waits.
func dial(ctx context.Context, path string) (net.Conn, error) {
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		if err := steps.Pause(ctx, queuePause); err != nil {
			return nil, err
		}
	}
}

// Status asks for the status. The error is ErrNotRunning if no service is there, and ErrSlow if there is one that takes
// too long. Any other error says why the service could not be asked.
func (c *Client) Status(ctx context.Context) (servicestatus.Status, error) {
	var status servicestatus.Status
	body, err := c.ask(ctx, http.MethodGet, "/status")
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return status, fmt.Errorf("reading the service's status: %w", err)
	}
	return status, nil
}

// Reload tells the service that there is a new cluster, or that the record of one has changed.
func (c *Client) Reload(ctx context.Context) error {
	_, err := c.ask(ctx, http.MethodPost, "/reload")
	return err
}

// Rotate begins to replace the authority of kubelets' certificates of the cluster with a namespace, unless that is
// under way already.
func (c *Client) Rotate(ctx context.Context, namespace string) (servicestatus.Rotation, error) {
	var status servicestatus.Rotation
	body, err := c.ask(ctx, http.MethodPost, "/rotate?cluster="+url.QueryEscape(namespace))
	if err != nil {
		return status, err
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return status, fmt.Errorf("reading the service's answer: %w", err)
	}
	return status, nil
}

// RotateTokenKeys publishes another key of the service account tokens of the cluster with a namespace, which signs
// after a notice. It changes nothing if there is one already that does not sign yet.
func (c *Client) RotateTokenKeys(ctx context.Context, namespace string, notice time.Duration) ([]servicestatus.TokenKey, error) {
	body, err := c.ask(ctx, http.MethodPost, "/token-keys/rotate?cluster="+url.QueryEscape(namespace)+"&notice="+url.QueryEscape(notice.String()))
	if err != nil {
		return nil, err
	}
	var keys []servicestatus.TokenKey
	if err := json.Unmarshal(body, &keys); err != nil {
		return nil, fmt.Errorf("reading the service's answer: %w", err)
	}
	return keys, nil
}

// FreeManagementEtcd has the space of the management plane's etcd given back, and returns what was done. It takes as long
// as etcd does: the context bounds it.
func (c *Client) FreeManagementEtcd(ctx context.Context) (done string, err error) {
	patient := &Client{http.Client{Transport: c.http.Transport}}
	body, err := patient.ask(ctx, http.MethodPost, "/management-etcd/defragment")
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(body, &done); err != nil {
		return "", fmt.Errorf("reading the service's answer: %w", err)
	}
	return done, nil
}

// PodIdentity asks which identity a pod of the cluster with a namespace has, and why.
func (c *Client) PodIdentity(ctx context.Context, cluster, namespace, pod string) (podidentity.Explanation, error) {
	var explanation podidentity.Explanation
	body, err := c.ask(ctx, http.MethodGet, "/pods/"+url.PathEscape(namespace)+"/"+url.PathEscape(pod)+"/identity?cluster="+url.QueryEscape(cluster))
	if err != nil {
		return explanation, err
	}
	if err := json.Unmarshal(body, &explanation); err != nil {
		return explanation, fmt.Errorf("reading the service's answer: %w", err)
	}
	return explanation, nil
}

func (c *Client) ask(ctx context.Context, method, path string) ([]byte, error) {
	return c.send(ctx, method, path, http.NoBody)
}

// send asks with a body. The error wraps ErrRefused if the account says no.
func (c *Client) send(ctx context.Context, method, path string, content io.Reader) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://muster"+path, content)
	if err != nil {
		return nil, err
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 64<<20))
	if err != nil {
		return nil, unanswered(ctx, err)
	}
	if answer.StatusCode >= 300 {
		said, _, _ := strings.Cut(strings.TrimSpace(string(body[:min(len(body), 1024)])), "\n")
		if why, refused := strings.CutPrefix(said, ErrRefused.Error()+": "); refused && answer.StatusCode == http.StatusForbidden {
			return nil, fmt.Errorf("%w: %s", ErrRefused, why)
		}
		return nil, fmt.Errorf("the service answered %s to %s: %s", answer.Status, path, said)
	}
	return body, nil
}

// unanswered is why a service has not answered. A service that ends meanwhile breaks the connection, and does not run
// then; nor does it if its socket is missing, or was left by a process that ended. Any other error of connecting says
// nothing of the service.
func unanswered(ctx context.Context, err error) error {
	var slow net.Error
	connecting, failed := errors.AsType[*net.OpError](err)
	failed = failed && connecting.Op == "dial"
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &slow) && slow.Timeout():
		return ErrSlow
	case failed && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("asking the service: %w", connecting)
	default:
		return ErrNotRunning
	}
}
