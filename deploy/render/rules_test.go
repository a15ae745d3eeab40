// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// program is one that is watched: by the names of its files, and what its processes are called in a dashboard.
type program struct{ alerts, metrics, dashboard string }

func controller() program {
	return program{"alerts/certificate-controller.yaml", "metrics.txt", "dashboards/certificate-controller.json"}
}

func authenticatorProgram() program {
	return program{"alerts/authenticator.yaml", "metrics-authenticator.txt", "dashboards/authenticator.json"}
}

func (p program) rules(t *testing.T) []rulefmt.Rule {
	t.Helper()
	path := filepath.Join(deploy, p.alerts)
	groups, errs := rulefmt.ParseFile(path, false, model.UTF8Validation, promql(), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if groups == nil || len(groups.Groups) == 0 {
		t.Fatal("there are no alerts")
	}
	var rules []rulefmt.Rule
	for _, g := range groups.Groups {
		rules = append(rules, g.Rules...)
	}
	return rules
}

func promql() parser.Parser { return parser.NewParser(parser.Options{}) }

// series is what each metric of a program is labelled with, by its name, as its list in deploy/ has it.
func (p program) series(t *testing.T) map[string][]string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(deploy, p.metrics))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string][]string{}
	for line := range strings.Lines(string(raw)) {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		name, labels := fields[0], fields[2:]
		if fields[1] != "histogram" {
			known[name] = labels
			continue
		}
		known[name+"_bucket"] = append(slices.Clone(labels), "le")
		known[name+"_sum"], known[name+"_count"] = labels, labels
	}
	return known
}

// checkQuery tells which metrics and labels of a query there are not.
func checkQuery(t *testing.T, where, query string, known map[string][]string) {
	t.Helper()
	expr, err := promql().ParseExpr(query)
	if err != nil {
		t.Errorf("%s: %v", where, err)
		return
	}
	// Labels of every target, and the labels that Prometheus adds by itself.
	common := []string{"__name__", "job", "namespace", "instance", "pod"}
	labels := slices.Clone(common)
	var grouped []string
	parser.Inspect(expr, func(node parser.Node, _ []parser.Node) error {
		switch n := node.(type) {
		case *parser.VectorSelector:
			own, ok := known[n.Name]
			if !ok && !slices.Contains([]string{"process_cpu_seconds_total", "process_resident_memory_bytes", "up"}, n.Name) {
				t.Errorf("%s: there is no metric %s", where, n.Name)
			}
			labels = append(labels, own...)
			for _, m := range n.LabelMatchers {
				if !slices.Contains(own, m.Name) && !slices.Contains(common, m.Name) {
					t.Errorf("%s: %s has no label %s", where, n.Name, m.Name)
				}
			}
		case *parser.AggregateExpr:
			grouped = append(grouped, n.Grouping...)
		}
		return nil
	})
	for _, l := range grouped {
		if !slices.Contains(labels, l) {
			t.Errorf("%s: nothing in it has the label %s", where, l)
		}
	}
}

func TestAlertsUseWhatIsThere(t *testing.T) {
	for _, p := range []program{controller(), authenticatorProgram()} {
		t.Run(p.alerts, p.testAlertsUseWhatIsThere)
	}
}

func (p program) testAlertsUseWhatIsThere(t *testing.T) {
	known := p.series(t)
	page, err := os.ReadFile(filepath.Join(deploy, "..", "docs", "observability.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range p.rules(t) {
		checkQuery(t, r.Alert, r.Expr, known)
		if s := r.Labels["severity"]; s != "warning" && s != "critical" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
			t.Errorf("%s does not say what it is about", r.Alert)
		}
		if !strings.Contains(string(page), "`"+r.Alert+"`") {
			t.Errorf("docs/observability.md does not say what to do about %s", r.Alert)
		}
	}
}

const minute = time.Minute

// Each alert fires at the moment it should, and not before. While everything is well, no alert fires.
func TestAlerts(t *testing.T) {
	const hour = 3600
	w := func(metric string, value func(minutes float64) float64) samples {
		return samples{metric: metric, value: value}
	}
	at := func(v float64) func(float64) float64 { return func(float64) float64 { return v } }
	grows := func(perMinute float64) func(float64) float64 {
		return func(m float64) float64 { return perMinute * m }
	}
	serving := `{signer="kubernetes.io/kubelet-serving"`
	well := []samples{
		w(`muster_certificates_leader{pod="a"}`, at(1)),
		w(`muster_certificates_leader{pod="b"}`, at(0)),
		w(`muster_certificates_waiting{pod="a"}`, func(m float64) float64 { return math.Mod(m, 5) }),
		w(`muster_certificates_queue_depth{pod="a"}`, func(m float64) float64 { return 500 * math.Mod(m, 2) }),
		w(`muster_certificates_decisions_total`+serving+`,verdict="Approve",rule=""}`, grows(3000)),
		w(`muster_certificates_decisions_total`+serving+`,verdict="Wait",rule="machine"}`, grows(20)),
		w(`muster_certificates_decisions_total`+serving+`,verdict="Deny",rule="shape"}`, grows(0.1)),
		w(`muster_certificates_errors_total`+serving+`,step="approve"}`, grows(1)),
		w(`muster_certificates_issue_duration_seconds_bucket`+serving+`,le="0.008"}`, grows(60)),
		w(`muster_certificates_issue_duration_seconds_bucket`+serving+`,le="+Inf"}`, grows(60)),
		w(`muster_certificates_signing_certificate_expiry_timestamp_seconds{key="a",pod="a"}`, at(365*24*hour)),
		w(`muster_certificates_node_certificate_expiry_timestamp_seconds`+serving+`,pod="a"}`, at(30*hour)),
		w(`muster_certificates_source_age_seconds{source="static",pod="a"}`, at(0)),
		w(`muster_certificates_source_age_seconds{source="register",pod="a"}`, at(2)),
	}
	controller().testAlerts(t, well, map[string]whenAlert{
		"all is well": {},
		"nobody leads": {
			change: []samples{w(`muster_certificates_leader{pod="a"}`, at(0))},
			want:   map[string]time.Duration{"MusterCertificatesNoLeader": 2 * minute},
		},
		"it is not there at all": {
			less: "muster_certificates_leader",
			want: map[string]time.Duration{"MusterCertificatesNoLeader": 2 * minute},
		},
		"requests wait": {
			change: []samples{w(`muster_certificates_waiting{pod="a"}`, func(m float64) float64 { return min(m, 3) })},
			want:   map[string]time.Duration{"MusterCertificatesRequestsWait": 20 * minute},
		},
		"a kubelet is denied": {
			change: []samples{w(`muster_certificates_decisions_total`+serving+`,verdict="Deny",rule="name-assigned"}`, grows(112./60))},
			want:   map[string]time.Duration{"MusterCertificatesDenied": 11 * minute},
		},
		"the API server refuses": {
			change: []samples{w(`muster_certificates_errors_total`+serving+`,step="approve"}`, grows(60))},
			want:   map[string]time.Duration{"MusterCertificatesErrors": 11 * minute},
		},
		"the queue grows": {
			change: []samples{w(`muster_certificates_queue_depth{pod="a"}`, grows(50))},
			want:   map[string]time.Duration{"MusterCertificatesQueueGrows": 17 * minute},
		},
		"the queue is long and shrinks": {
			change: []samples{w(`muster_certificates_queue_depth{pod="a"}`, func(m float64) float64 { return 5000 - 50*m })},
		},
		"issuing is slow": {
			change: []samples{w(`muster_certificates_issue_duration_seconds_bucket`+serving+`,le="131.072"}`, grows(60)), w(`muster_certificates_issue_duration_seconds_bucket`+serving+`,le="0.008"}`, grows(1))},
			want:   map[string]time.Duration{"MusterCertificatesSlow": 11 * minute},
		},
		"the authority expires in four weeks": {
			change: []samples{w(`muster_certificates_signing_certificate_expiry_timestamp_seconds{key="a",pod="a"}`, at(28*24*hour))},
			want:   map[string]time.Duration{"MusterSigningCertificateExpires": 15 * minute},
		},
		"the authority expires in six days": {
			change: []samples{w(`muster_certificates_signing_certificate_expiry_timestamp_seconds{key="a",pod="a"}`, at(6*24*hour))},
			want:   map[string]time.Duration{"MusterSigningCertificateExpires": 15 * minute, "MusterSigningCertificateExpiresSoon": 0},
		},
		"a node does not renew": {
			change: []samples{w(`muster_certificates_node_certificate_expiry_timestamp_seconds`+serving+`,pod="a"}`, at(13*hour))},
			want:   map[string]time.Duration{"MusterNodeCertificateNotRenewed": 76 * minute},
		},
		"the inventory is gone": {
			change: []samples{w(`muster_certificates_source_age_seconds{source="static",pod="a"}`, grows(60))},
			want:   map[string]time.Duration{"MusterInventoryStale": 11 * minute},
		},
		"the inventory never was there": {
			change: []samples{w(`muster_certificates_source_age_seconds{source="static",pod="a"}`, at(math.Inf(1)))},
			want:   map[string]time.Duration{"MusterInventoryStale": 5 * minute},
		},
		"the register is not written": {
			change: []samples{w(`muster_certificates_source_age_seconds{source="register",pod="a"}`, at(math.Inf(1)))},
			want:   map[string]time.Duration{"MusterRegisterNotWritten": 5 * minute},
		},
	})
}

// whenAlert is what is not well, and what fires because of it.
type whenAlert struct {
	change []samples // in place of those of the same series
	less   string    // the metric that is not there
	want   map[string]time.Duration
}

func (p program) testAlerts(t *testing.T, well []samples, cases map[string]whenAlert) {
	t.Helper()
	const hour = 3600
	tried := map[string]bool{}
	for name, tc := range cases {
		for alert := range tc.want {
			tried[alert] = true
		}
		t.Run(name, func(t *testing.T) {
			db := database{}
			for _, s := range append(slices.Clone(well), tc.change...) {
				if tc.less == "" || !strings.HasPrefix(s.metric, tc.less+"{") {
					db.add(t, s, 2*hour/60)
				}
			}
			got := map[string]time.Duration{}
			for _, r := range p.rules(t) {
				if fired, ok := db.fires(t, r, 2*hour/60); ok {
					got[r.Alert] = fired
				}
			}
			if len(tc.want) == 0 {
				tc.want = map[string]time.Duration{}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("alerts that fire, and when (-want +got):\n%s", diff)
			}
		})
	}
	for _, r := range p.rules(t) {
		if !tried[r.Alert] {
			t.Errorf("%s is not tried", r.Alert)
		}
	}
}

// Every query of the dashboard asks for what is there, of the data source that the reader chooses.
func TestDashboard(t *testing.T) {
	for _, p := range []program{controller(), authenticatorProgram()} {
		t.Run(p.dashboard, p.testDashboard)
	}
}

func (p program) testDashboard(t *testing.T) {
	raw, err := os.ReadFile(filepath.Join(deploy, p.dashboard))
	if err != nil {
		t.Fatal(err)
	}
	type dashboard struct {
		Title, UID string
		Panels     []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ H, W, X, Y int }
			Targets []struct {
				Expr       string
				Datasource struct{ Type, UID string }
			}
		}
		Templating struct {
			List []struct{ Name, Type, Query string }
		}
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	if d.Title == "" || d.UID == "" || len(d.Panels) < 8 {
		t.Errorf("title %q, uid %q, %d panels", d.Title, d.UID, len(d.Panels))
	}
	known := p.series(t)
	used := map[string]bool{}
	variables := regexp.MustCompile(`\$(__rate_interval|__interval)`)
	ids := map[int]string{}
	for _, panel := range d.Panels {
		if ids[panel.ID] != "" || panel.GridPos.W == 0 || panel.GridPos.X+panel.GridPos.W > 24 {
			t.Errorf("panel %q: id %d (%q has it), place %+v", panel.Title, panel.ID, ids[panel.ID], panel.GridPos)
		}
		ids[panel.ID] = panel.Title
		if panel.Type != "row" && len(panel.Targets) == 0 {
			t.Errorf("panel %q shows nothing", panel.Title)
		}
		for _, q := range panel.Targets {
			if q.Datasource.UID != "${datasource}" {
				t.Errorf("panel %q asks %q", panel.Title, q.Datasource.UID)
			}
			query := variables.ReplaceAllString(q.Expr, "5m")
			checkQuery(t, panel.Title, strings.ReplaceAll(query, "$signer", ".*"), known)
			for name := range maps.Keys(known) {
				if strings.Contains(q.Expr, name) {
					used[name] = true
				}
			}
		}
	}
	for name := range known {
		if !used[name] && !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			t.Errorf("the dashboard does not show %s", name)
		}
	}
}
