// SPDX-License-Identifier: Apache-2.0

package controlsocket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/iam/viewer"
	"muster.dev/muster/internal/plane/podidentity"
	"muster.dev/muster/internal/platform/socketdir"
)

// ErrNoCluster means that the cluster of a request does not run here.
var ErrNoCluster = errors.New("no such cluster runs here")

// ErrRefused means that the account says no to somebody who looks at the console.
var ErrRefused = errors.New("refused")

// Service is what the command line can ask for. A cluster is named by its namespace; an empty one stands for the only
// cluster.
type Service interface {
	// Status returns the present state.
	Status(ctx context.Context) servicestatus.Status
	// Reload has the service look for clusters, and read the records of those that run.
	Reload()
	// Rotate begins to replace the authority of kubelets' certificates of a cluster.
	Rotate(cluster string) (servicestatus.Rotation, error)
	// RotateTokenKeys publishes another key of the service account tokens of a cluster, which signs after a notice.
	RotateTokenKeys(cluster string, notice time.Duration) ([]servicestatus.TokenKey, error)
	// FreeManagementEtcd gives back the space of the management plane's etcd, and says what was done.
	FreeManagementEtcd(ctx context.Context) (done string, err error)
	// ExplainPod says which identity a pod has, and why.
	ExplainPod(ctx context.Context, cluster, namespace, name string) (podidentity.Explanation, error)
	// ProveViewer says who made a token for a console. The error wraps ErrRefused if it is not a token for it.
	ProveViewer(ctx context.Context, p viewer.Proof) (viewer.Viewer, error)
	// DecideViewer asks IAM about somebody who looks at the console, and answers each question. The error wraps ErrRefused if the identity
	// has ended.
	DecideViewer(ctx context.Context, d viewer.Decision) ([]viewer.Refusal, error)
	// RequestOfViewer does a request of EKS's API as somebody who looks at the console.
	RequestOfViewer(ctx context.Context, r viewer.Request) (viewer.Refusal, error)
}

// Serve answers the command line at the path of a socket until the context ends.
func Serve(ctx context.Context, path string, service Service, metrics prometheus.Gatherer) error {
	listener, err := socketdir.ListenPrivate(ctx, path)
	if err != nil {
		return fmt.Errorf("listening for the command line: %w", err)
	}
	server := &http.Server{Handler: handler(service, metrics), ReadHeaderTimeout: 5 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("answering the command line: %w", err)
	}
	return nil
}

func handler(service Service, metrics prometheus.Gatherer) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) { answer(w, http.StatusOK, service.Status(r.Context())) })
	mux.HandleFunc("POST /reload", func(w http.ResponseWriter, _ *http.Request) {
		service.Reload()
		w.WriteHeader(http.StatusAccepted)
	})
	mux.HandleFunc("POST /rotate", func(w http.ResponseWriter, r *http.Request) {
		status, err := service.Rotate(r.URL.Query().Get("cluster"))
		if err != nil {
			refuse(w, err, http.StatusInternalServerError)
			return
		}
		answer(w, http.StatusAccepted, status)
	})
	mux.HandleFunc("POST /token-keys/rotate", func(w http.ResponseWriter, r *http.Request) {
		notice, err := time.ParseDuration(r.URL.Query().Get("notice"))
		if err != nil {
			http.Error(w, "notice: "+err.Error(), http.StatusBadRequest)
			return
		}
		keys, err := service.RotateTokenKeys(r.URL.Query().Get("cluster"), notice)
		if err != nil {
			refuse(w, err, http.StatusConflict)
			return
		}
		answer(w, http.StatusOK, keys)
	})
	mux.HandleFunc("POST /management-etcd/defragment", func(w http.ResponseWriter, r *http.Request) {
		done, err := service.FreeManagementEtcd(r.Context())
		if err != nil {
			refuse(w, err, http.StatusConflict)
			return
		}
		answer(w, http.StatusOK, done)
	})
	mux.HandleFunc("GET /pods/{namespace}/{name}/identity", func(w http.ResponseWriter, r *http.Request) {
		explanation, err := service.ExplainPod(r.Context(), r.URL.Query().Get("cluster"), r.PathValue("namespace"), r.PathValue("name"))
		if err != nil {
			refuse(w, err, http.StatusServiceUnavailable)
			return
		}
		answer(w, http.StatusOK, explanation)
	})
	mux.HandleFunc("POST /viewers/prove", posted(service.ProveViewer))
	mux.HandleFunc("POST /viewers/decide", posted(service.DecideViewer))
	mux.HandleFunc("POST /viewers/request", posted(service.RequestOfViewer))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		if why := unready(service.Status(r.Context())); why != "" {
			http.Error(w, why, http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ok\n")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// mostBody is how large the body of a request may be, in bytes.
const mostBody = 4 << 20

// posted answers requests whose bodies are JSON.
func posted[In, Out any](do func(context.Context, In) (Out, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var in In
		if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostBody)).Decode(&in); err != nil {
			http.Error(w, "reading the request: "+err.Error(), http.StatusBadRequest)
			return
		}
		out, err := do(r.Context(), in)
		switch {
		case errors.Is(err, ErrRefused):
			refuse(w, err, http.StatusForbidden)
		case err != nil:
			refuse(w, err, http.StatusServiceUnavailable)
		default:
			answer(w, http.StatusOK, out)
		}
	}
}

// unready says why a service is not ready; empty if it is.
func unready(status servicestatus.Status) string {
	if status.Looking {
		return "the service is looking for its clusters: " + status.Message
	}
	for _, cluster := range status.Clusters {
		if !cluster.Ready {
			return "cluster " + cluster.Name + " is not ready: " + cluster.Message
		}
	}
	return ""
}

// refuse answers with an error. A cluster or a pod that is not there is 404, whatever else the code is.
func refuse(w http.ResponseWriter, err error, code int) {
	if errors.Is(err, ErrNoCluster) || apierrors.IsNotFound(err) {
		code = http.StatusNotFound
	}
	http.Error(w, err.Error(), code)
}

func answer(w http.ResponseWriter, code int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(value)
}
