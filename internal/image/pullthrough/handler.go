// SPDX-License-Identifier: Apache-2.0

package pullthrough

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/distribution/reference"
	"github.com/opencontainers/go-digest"
	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/singleflight"

	"muster.dev/muster/internal/image/pulledstore"
	"muster.dev/muster/internal/image/pullthroughconfig"
	"muster.dev/muster/internal/network/egresspolicy"
)

// Settings are what decides about pulls, as of now.
type Settings struct {
	pullthroughconfig.Config
	Proxy pullthroughconfig.Proxy
}

// Egress is what may leave a VPC.
type Egress struct {
	Policy egresspolicy.Policy
	// Own are the ranges of the VPC and of its pods.
	Own []netip.Prefix
}

// Config is what a Handler needs.
type Config struct {
	Store    *pulledstore.Store
	Settings func() (Settings, error)
	// Egress reads what may leave a VPC.
	Egress func(vpc string) (Egress, error)
	// VPC is the one that a request comes from.
	VPC func(*http.Request) string
	// Refuse decides about an address that is about to be dialled for a VPC.
	Refuse func(Egress, netip.Addr) error
	// Own is the name of the account's own registry, and Next what answers requests for its images.
	Own  string
	Next http.Handler
	// Metrics may be nil.
	Metrics prometheus.Registerer
	Log     *slog.Logger
}

// Handler answers pulls of images of other registries.
type Handler struct {
	Config
	// life ends what is pulled in the background.
	life     context.Context //nolint:containedctx // pulls outlive the requests that began them
	requests *prometheus.CounterVec
	pulled   prometheus.Counter

	manifests singleflight.Group
	pulling   pulling

	mutex     sync.Mutex
	slots     slots // of flights
	whole     slots // of images that are made whole
	clients   map[place]*client
	flights   map[flightKey]*flight
	away      map[place]time.Time // registries that could not be had, and until when they are not asked again if there is a copy
	told      map[toldKey]told    // failures that HEADs were answered with a moment ago
	collected sync.Mutex
	// sinceCollected counts the bytes of manifests that came since room was made.
	sinceCollected atomic.Int64
}

// place is a registry as a VPC reaches it.
type place struct{ vpc, registry string }

// wholeAtOnce is how many images are made whole at once.
const wholeAtOnce = 4

// New makes a Handler. Its pulls in the background end with the context.
func New(ctx context.Context, c Config) (*Handler, error) {
	if c.Store == nil || c.Settings == nil || c.Egress == nil || c.VPC == nil || c.Refuse == nil || c.Own == "" || c.Next == nil || c.Log == nil {
		return nil, errors.New("pulling through needs a store, settings, the egress of VPCs, the own registry and a log")
	}
	h := &Handler{
		Config: c, life: ctx, pulling: pulling{vpcs: map[string]int64{}}, slots: newSlots(maxFlights), whole: newSlots(wholeAtOnce),
		clients: map[place]*client{}, flights: map[flightKey]*flight{}, away: map[place]time.Time{}, told: map[toldKey]told{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "muster_registry_pull_through_requests_total", Help: "Requests for images of other registries, by kind and by what came of them.",
		}, []string{"kind", "result"}),
		pulled: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "muster_registry_pull_through_bytes_total", Help: "Bytes of blobs that were pulled from other registries.",
		}),
	}
	if c.Metrics != nil {
		if err := errors.Join(c.Metrics.Register(h.requests), c.Metrics.Register(h.pulled)); err != nil {
			return nil, err
		}
	}
	return h, nil
}

// result is what came of a request, for metrics.
type result string

const (
	kept    result = "kept"
	pulled  result = "pulled"
	stale   result = "stale" // kept, and its registry could not be asked
	refused result = "refused"
	failed  result = "failed"
)

// request is one for an image of another registry.
type request struct {
	*http.Request
	place
	kind       string // manifests or blobs
	repository string // without the registry
	reference  string // a tag or a digest
	answer     http.ResponseWriter
	settings   Settings
	result     result
}

// name of the repository with its registry.
func (q *request) name() string { return q.registry + "/" + q.repository }

// ServeHTTP answers a request for an image of another registry, and passes others on.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if spaces := values["ns"]; err != nil || len(spaces) == 0 || len(spaces) == 1 && spaces[0] == h.Own {
		h.Next.ServeHTTP(w, r)
		return
	}
	began := time.Now()
	q := &request{Request: r, place: place{h.VPC(r), values.Get("ns")}, answer: w, kind: "other", result: failed}
	w.Header().Set("Docker-Distribution-Api-Version", "registry/2.0")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	err = h.serve(q) //nolint:contextcheck // what is pulled is for all that ask, and outlives the first of them
	if err != nil {
		h.fail(q, err)
	}
	h.requests.WithLabelValues(q.kind, string(q.result)).Inc()
	h.Log.Info("registry pull through", "vpc", q.vpc, "source", r.RemoteAddr, "method", r.Method, "registry", q.registry, "path", r.URL.Path, "result", string(q.result), "took", time.Since(began), "error", err)
}

func (h *Handler) serve(q *request) error {
	if q.Method != http.MethodGet && q.Method != http.MethodHead {
		return &failure{http.StatusMethodNotAllowed, "UNSUPPORTED", "images of other registries can only be pulled"}
	}
	if len(q.URL.Query()["ns"]) != 1 {
		return &failure{http.StatusBadRequest, "NAME_INVALID", "the parameter ns is there twice"}
	}
	if q.vpc == "" {
		return &failure{http.StatusForbidden, "DENIED", "only machines of a VPC pull images of other registries here"}
	}
	if err := q.parse(); err != nil {
		return err
	}
	var err error
	if q.settings, err = h.Settings(); err != nil {
		h.Log.Error("nothing is pulled through", "error", err)
		return &failure{http.StatusServiceUnavailable, "UNAVAILABLE", "the settings of registries in the state directory cannot be read; the log of the registry says why"}
	}
	if _, ok := q.settings.Find(q.registry); !ok {
		q.result = refused
		return &failure{http.StatusForbidden, "DENIED", "images of this registry are not pulled through: name it in registries.yaml of the state directory"}
	}
	if q.kind == "manifests" {
		return h.serveManifest(q)
	}
	return h.serveBlob(q)
}

// parse reads the path of a request, and checks everything that a client says.
func (q *request) parse() error {
	rest, ok := strings.CutPrefix(q.URL.Path, "/v2/")
	parts := strings.Split(rest, "/")
	n := len(parts)
	if !ok || n < 3 || parts[n-2] != "manifests" && parts[n-2] != "blobs" {
		return &failure{http.StatusNotFound, "UNSUPPORTED", "images of other registries can only be pulled"}
	}
	q.repository, q.reference = strings.Join(parts[:n-2], "/"), parts[n-1]
	named, err := reference.ParseNamed(q.name())
	if err != nil || reference.Domain(named) != q.registry || reference.Path(named) != q.repository {
		return &failure{http.StatusBadRequest, "NAME_INVALID", "the repository's name is not one of an image"}
	}
	if q.isDigest() {
		if sum := digest.Digest(q.reference); sum.Validate() != nil || sum.Algorithm() != digest.SHA256 {
			return &failure{http.StatusBadRequest, "DIGEST_INVALID", "the digest must be sha256: and 64 hexadecimal digits"}
		}
	} else if _, err := reference.WithTag(named, q.reference); err != nil || parts[n-2] == "blobs" {
		return &failure{http.StatusBadRequest, "TAG_INVALID", "the tag is not one of an image"}
	}
	q.kind = parts[n-2]
	return nil
}

func (q *request) isDigest() bool { return strings.Contains(q.reference, ":") }
