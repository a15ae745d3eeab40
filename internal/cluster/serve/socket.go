// SPDX-License-Identifier: Apache-2.0

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/statedir"
)

// ErrNotRunning means that no service listens on this state directory.
var ErrNotRunning = errors.New("no service runs on this state directory")

// ErrSlow means that a service listens, and has not answered within clientTimeout.
var ErrSlow = fmt.Errorf("the service runs and has not answered within %s; this host may be busy: try again, or look at the log of the service", clientTimeout)

// clientTimeout is how long a service may take to answer the command line.
const clientTimeout = 20 * time.Second

// serveSocket answers the command line on a unix socket that only the owner of the state directory can reach:
// /status, /reload, /rotate, /token-keys/rotate, /pods, /healthz, /readyz and /metrics.
func (s *Service) serveSocket(ctx context.Context, metrics prometheus.Gatherer) error {
	listener, err := listenPrivate(ctx, s.cfg.State.Socket())
	if err != nil {
		return fmt.Errorf("listening for the command line: %w", err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(s.Status(r.Context()))
	})
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
		s.lookAgain()
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST /rotate", func(w http.ResponseWriter, r *http.Request) {
		h := s.cluster(r.URL.Query().Get("cluster"))
		if h == nil {
			http.Error(w, errNoCluster.Error(), http.StatusNotFound)
			return
		}
		status, err := h.startRotation()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusAccepted)
		_ = json.NewEncoder(w).Encode(status)
	})
	mux.HandleFunc("POST /token-keys/rotate", s.rotateTokenKeys)
	mux.HandleFunc("GET /pods/{namespace}/{name}/identity", s.explainPod)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		status := s.Status(r.Context())
		if status.Looking {
			http.Error(w, "the service is looking for its clusters: "+status.Message, http.StatusServiceUnavailable)
			return
		}
		for _, cluster := range status.Clusters {
			if !cluster.Ready {
				http.Error(w, "cluster "+cluster.Name+" is not ready: "+cluster.Message, http.StatusServiceUnavailable)
				return
			}
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering the command line: %w", err)
	}
	return nil
}

// rotateTokenKeys answers POST /token-keys/rotate?cluster=NAMESPACE&notice=DURATION.
func (s *Service) rotateTokenKeys(w http.ResponseWriter, r *http.Request) {
	h := s.cluster(r.URL.Query().Get("cluster"))
	if h == nil {
		http.Error(w, errNoCluster.Error(), http.StatusNotFound)
		return
	}
	notice, err := time.ParseDuration(r.URL.Query().Get("notice"))
	if err != nil {
		http.Error(w, "notice: "+err.Error(), http.StatusBadRequest)
		return
	}
	keys, err := h.rotateTokenKeys(notice, time.Now())
	if err != nil {
		http.Error(w, err.Error(), http.StatusConflict)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(keys)
}

// listenPrivate makes a unix socket that its owner alone can use, in place of one that a killed service left. Its directory must be
// private.
func listenPrivate(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("removing stale socket: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// Client asks a running service.
type Client struct{ http http.Client }

// NewClient asks the service of a state directory. Nothing is asked yet.
func NewClient(dir statedir.Dir) *Client {
	return &Client{http.Client{
		Timeout: clientTimeout,
		Transport: &http.Transport{
			DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
				var d net.Dialer
				return d.DialContext(ctx, "unix", dir.Socket())
			},
		},
	}}
}

// Status asks for the status. The error is ErrNotRunning if no service is there, and ErrSlow if there is one that takes too long.
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

// Rotate begins to replace the authority of kubelets' certificates of the cluster with a namespace, unless that is under way already.
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

// RotateTokenKeys publishes another key of the service account tokens of the cluster with a namespace, which signs after a notice. It changes
// nothing if there is one already that does not sign yet.
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
	request, err := http.NewRequestWithContext(ctx, method, "http://muster"+path, http.NoBody)
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
		return nil, fmt.Errorf("the service answered %s to %s: %s", answer.Status, path, said)
	}
	return body, nil
}

// unanswered is why a service has not answered. One that ends meanwhile breaks the connection, and does not run then.
func unanswered(ctx context.Context, err error) error {
	var slow net.Error
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.As(err, &slow) && slow.Timeout():
		return ErrSlow
	default:
		return ErrNotRunning
	}
}
