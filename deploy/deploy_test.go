// SPDX-License-Identifier: Apache-2.0

// Package deploy_test holds what is in this directory against the code that it is for. The chart itself is tested in render/, a
// module of its own, because nothing else needs Helm.
package deploy_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/kubernetes/fake"
	"sigs.k8s.io/yaml"

	"muster.dev/muster/internal/certificates"
	"muster.dev/muster/internal/facts"
	"muster.dev/muster/internal/pki"
	"muster.dev/muster/internal/policy"
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
	_, err := certificates.New(certificates.Config{
		Client: fake.NewClientset(), Mode: certificates.Observe, Metrics: got, Logger: slog.New(slog.DiscardHandler),
		Signers:   map[string]certificates.Issuance{pki.SignerKubeletServing: {Profile: profile}},
		Inventory: struct{ certificates.Inventory }{}, Access: struct{ certificates.Access }{},
		Nodes: struct{ certificates.Nodes }{}, Register: struct{ certificates.Register }{}, Events: struct{ certificates.Recorder }{},
	})
	if err != nil {
		t.Fatal(err)
	}
	got.compare(t, "metrics.txt")
}

// What kubectl makes of nodes with machines.gotemplate is an inventory that the controller reads.
func TestInventoryOfNodes(t *testing.T) {
	raw, err := os.ReadFile("testdata/nodes.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var nodes any
	if err := yaml.Unmarshal(raw, &nodes); err != nil {
		t.Fatal(err)
	}
	list, err := template.ParseFiles("machines.gotemplate")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "machines.yaml")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := list.Execute(file, nodes); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	source, err := facts.NewStaticFile(facts.StaticFileConfig{File: path, OnChange: func(facts.Change) {}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, node := range []string{"plain", "ip-10-0-0-7.eu-central-2.compute.internal", "named-otherwise", "repeats-itself"} {
		m := source.MachineOfNode(node)
		if m.State != policy.Known {
			t.Fatalf("%s: %+v", node, m)
		}
		got[node] = m.Value.ID
		for _, a := range m.Value.Addresses {
			got[node] += " " + a.String()
		}
		got[node] += " " + strings.Join(m.Value.Names, " ")
	}
	want := map[string]string{
		"plain": "11111111-0000-4000-8000-000000000001 10.0.0.5 2001:db8::5 ",
		"ip-10-0-0-7.eu-central-2.compute.internal": "ec2f0000-0000-4000-8000-000000000007 10.0.0.7 198.51.100.7 ec2-198-51-100-7.example.com",
		"named-otherwise": "11111111-0000-4000-8000-000000000003 10.0.0.9 host9.example.com",
		"repeats-itself":  "11111111-0000-4000-8000-000000000004 10.0.0.11 host11.example.com",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("machines (-want +got):\n%s", diff)
	}
}
