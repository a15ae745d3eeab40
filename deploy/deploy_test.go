// SPDX-License-Identifier: Apache-2.0

// Package deploy_test holds what is in this directory against the code that it is for. The chart itself is tested in
// render/, a module of its own, because nothing else needs Helm.
package deploy_test

import (
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"

	"muster.dev/muster/internal/certificates/csrcontroller"
	"muster.dev/muster/internal/certificates/pki"
)

// registry notes the metrics that are registered, as metrics.txt writes them.
type registry struct {
	prometheus.Registerer
	lines []string
}

var (
	description = regexp.MustCompile(`fqName: "([^"]+)".*constLabels: \{([^}]*)\}, variableLabels: \{([^}]*)\}`)
	constant    = regexp.MustCompile(`([a-zA-Z_]+)="`)
)

func (r *registry) Register(c prometheus.Collector) error {
	kind := "gauge"
	switch c.(type) {
	case prometheus.Gauge: // it counts up too
	case *prometheus.CounterVec, prometheus.Counter:
		kind = "counter"
	case *prometheus.HistogramVec:
		kind = "histogram"
	}
	descriptions := make(chan *prometheus.Desc, 100)
	c.Describe(descriptions)
	close(descriptions)
	for d := range descriptions {
		parts := description.FindStringSubmatch(d.String())
		line := parts[1] + " " + kind
		for _, label := range constant.FindAllStringSubmatch(parts[2], -1) {
			line += " " + label[1]
		}
		line += " " + strings.ReplaceAll(parts[3], ",", " ")
		r.lines = append(r.lines, strings.TrimSpace(line))
	}
	return nil
}

func (r *registry) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = r.Register(c)
	}
}

// compare compares what was registered with a list.
func (r *registry) compare(t *testing.T, list string) {
	t.Helper()
	raw, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for line := range strings.Lines(string(raw)) {
		if !strings.HasPrefix(line, "#") {
			want = append(want, strings.TrimSpace(line))
		}
	}
	slices.Sort(r.lines)
	if diff := cmp.Diff(want, slices.Compact(r.lines)); diff != "" {
		t.Errorf("%s, by name (-there +in the code):\n%s\nAlerts and dashboard may have to change as well.", list, diff)
	}
}

func TestMetricsAreThoseOfTheController(t *testing.T) {
	got := &registry{}
	profile, _ := pki.ProfileFor(pki.SignerKubeletServing)
	_, err := csrcontroller.New(csrcontroller.Config{
		Client: fake.NewClientset(), Mode: csrcontroller.Observe, Metrics: got, Logger: slog.New(slog.DiscardHandler),
		Signers:   map[string]csrcontroller.Issuance{pki.SignerKubeletServing: {Profile: profile}},
		Inventory: struct{ csrcontroller.Inventory }{}, Access: struct{ csrcontroller.Access }{},
		Nodes: struct{ csrcontroller.Nodes }{}, Register: struct{ csrcontroller.Register }{}, Events: struct{ csrcontroller.Recorder }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	got.compare(t, "metrics.txt")
}
