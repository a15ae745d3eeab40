// SPDX-License-Identifier: Apache-2.0

package deprecation

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// The metrics of an API server (apiserver/pkg/endpoints/metrics).
const (
	metricDeprecated = "apiserver_requested_deprecated_apis"
	metricRequests   = "apiserver_request_total"
	metricStart      = "process_start_time_seconds"
)

// maxLine and maxMetrics bound what is read, in bytes. An API server with many resources writes some 5 MB.
const (
	maxLine    = 1 << 16
	maxMetrics = 64 << 20
)

// API is a deprecated API that was requested.
type API struct {
	Group, Version, Resource, Subresource string
	// Removed is the minor version of Kubernetes, as 1.38, that does not have it any more; empty if that is not
	// decided.
	Removed string
	// Requests is how many there were.
	Requests int64
}

// Path is where the API is served.
func (a API) Path() string {
	parts := []string{"", "apis", a.Group, a.Version, a.Resource, a.Subresource}
	if a.Group == "" {
		parts = []string{"", "api", a.Version, a.Resource, a.Subresource}
	}
	return strings.TrimSuffix(strings.Join(parts, "/"), "/")
}

// Seen are the deprecated APIs that an API server was asked for since it started, by their path.
type Seen struct {
	Since time.Time
	APIs  []API
}

// Read reads the metrics of an API server.
func Read(metrics io.Reader) (Seen, error) {
	families, err := parse(metrics)
	if err != nil {
		return Seen{}, fmt.Errorf("reading the API server's metrics: %w", err)
	}
	started := families[metricStart].GetMetric()
	if len(started) != 1 {
		return Seen{}, errors.New("reading the API server's metrics: they do not say when it started")
	}
	seconds := started[0].GetGauge().GetValue()
	if math.IsNaN(seconds) || seconds < 0 || seconds > math.MaxInt32 {
		return Seen{}, fmt.Errorf("reading the API server's metrics: it started at %v seconds, which is not a time", seconds)
	}
	seen := Seen{Since: time.Unix(int64(seconds), 0).UTC()}
	counted := map[API]float64{}
	for _, metric := range families[metricRequests].GetMetric() {
		counted[apiOf(metric, false)] += metric.GetCounter().GetValue()
	}
	for _, metric := range families[metricDeprecated].GetMetric() {
		if metric.GetGauge().GetValue() == 0 {
			continue
		}
		api := apiOf(metric, true)
		if n := counted[apiOf(metric, false)]; n > 0 && n < math.MaxInt64 {
			api.Requests = int64(n)
		}
		seen.APIs = append(seen.APIs, api)
	}
	slices.SortFunc(seen.APIs, byPath)
	return seen, nil
}

func byPath(a, b API) int {
	return cmp.Or(cmp.Compare(a.Path(), b.Path()), cmp.Compare(a.Removed, b.Removed))
}

// Merge is what the API servers of a cluster were asked for together, since the last of them started.
func Merge(seen ...Seen) Seen {
	var all Seen
	requests := map[API]int64{}
	for _, one := range seen {
		if one.Since.After(all.Since) {
			all.Since = one.Since
		}
		for _, api := range one.APIs {
			n := api.Requests
			api.Requests = 0
			requests[api] += n
		}
	}
	for api, n := range requests {
		api.Requests = n
		all.APIs = append(all.APIs, api)
	}
	slices.SortFunc(all.APIs, byPath)
	return all
}

// apiOf is the API that a metric is about, with the release that removes it or without.
func apiOf(metric *dto.Metric, removed bool) API {
	var api API
	for _, label := range metric.GetLabel() {
		switch label.GetName() {
		case "group":
			api.Group = label.GetValue()
		case "version":
			api.Version = label.GetValue()
		case "resource":
			api.Resource = label.GetValue()
		case "subresource":
			api.Subresource = label.GetValue()
		case "removed_release":
			if removed {
				api.Removed = label.GetValue()
			}
		}
	}
	return api
}

// parse parses the few metrics that matter: all of them are megabytes.
func parse(metrics io.Reader) (map[string]*dto.MetricFamily, error) {
	var kept bytes.Buffer
	bounded := &io.LimitedReader{R: metrics, N: maxMetrics + 1}
	lines := bufio.NewScanner(bounded)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := strings.TrimPrefix(lines.Text(), "# TYPE ")
		name := line[:len(line)-len(strings.TrimLeft(line, "abcdefghijklmnopqrstuvwxyz_"))]
		if name == metricDeprecated || name == metricRequests || name == metricStart {
			kept.WriteString(lines.Text() + "\n")
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	if bounded.N == 0 {
		return nil, fmt.Errorf("they are longer than %d bytes", maxMetrics)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	return parser.TextToMetricFamilies(&kept)
}
