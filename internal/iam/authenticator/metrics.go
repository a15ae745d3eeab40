// SPDX-License-Identifier: Apache-2.0

package authenticator

import (
	"strconv"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"muster.dev/muster/internal/iam/identity"
	"muster.dev/muster/internal/iam/tokenverify"
)

// Metrics are those of aws-iam-authenticator under their own names, so that dashboards and alerts go on, and ours.
type Metrics struct {
	registry prometheus.Registerer

	latency            *prometheus.HistogramVec
	configMapFailures  prometheus.Counter
	fileFailures       prometheus.Counter
	connectionFailures *prometheus.CounterVec
	throttling         *prometheus.CounterVec
	responses          *prometheus.CounterVec
	disabledRegion     prometheus.Counter
	describeInstances  prometheus.Counter

	fileEnabled, fileOnly prometheus.Gauge

	hit, hitNo, hitOutage, miss prometheus.Counter
	decisions                   *prometheus.CounterVec
	trusted                     prometheus.Counter
	busy                        *prometheus.CounterVec
	entries                     prometheus.Gauge
	problems                    *prometheus.GaugeVec
	tableAge                    prometheus.Gauge
	linesLeftOut                prometheus.Counter

	mu      sync.Mutex
	regions map[string]bool
}

// mostRegions bounds the values of the label StsRegion: a maker of tokens can name regions that do not exist.
const mostRegions = 64

// NewMetrics registers them.
func NewMetrics(registry prometheus.Registerer) *Metrics {
	const theirs, ours = "aws_iam_authenticator", "muster_authenticator"
	f := promauto.With(registry)
	counter := func(namespace, name, help string) prometheus.Counter {
		return f.NewCounter(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help})
	}
	counters := func(namespace, name, help string, labels ...string) *prometheus.CounterVec {
		return f.NewCounterVec(prometheus.CounterOpts{Namespace: namespace, Name: name, Help: help}, labels)
	}
	m := &Metrics{
		registry: registry, regions: map[string]bool{},
		latency: f.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: theirs, Name: "authenticate_latency_seconds", Help: "How long a request to authenticate took, by what came of it.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"result"}),
		configMapFailures:  counter(theirs, "configmap_watch_failures_total", "Times that the ConfigMap aws-auth could not be watched."),
		fileFailures:       counter(theirs, "dynamicfile_failures_total", "Times that the file of mappings could not be read."),
		connectionFailures: counters(theirs, "sts_connection_failures_total", "Questions that STS did not answer at all.", "StsRegion"),
		throttling:         counters(theirs, "sts_throttling_total", "Questions that STS did not want to answer.", "StsRegion"),
		responses:          counters(theirs, "sts_responses_total", "Answers of STS.", "ResponseCode", "StsRegion"),
		disabledRegion:     counter(theirs, "sts_disabled_region_call", "Questions to STS in a region that is switched off."),
		describeInstances:  counter(theirs, "ec2_describe_instances_calls_total", "Calls of DescribeInstances."),
		fileEnabled:        f.NewGauge(prometheus.GaugeOpts{Namespace: theirs, Name: "dynamic_file_enabled", Help: "1 if there is a file of mappings."}),
		fileOnly:           f.NewGauge(prometheus.GaugeOpts{Namespace: theirs, Name: "dynamic_file_only", Help: "1 if the file of mappings is all there is."}),
		decisions:          counters(ours, "decisions_total", "Decisions, by the source of the mapping that decided.", "result", "source"),
		trusted:            counter(ours, "trusted_names_total", "Requests of nodes that were let in because the configuration trusts the names of their role's sessions."),
		busy:               counters(ours, "questions_refused_total", "Questions that were not asked because too many waited, by whether whose access key it is was let in before.", "key"),
		entries:            f.NewGauge(prometheus.GaugeOpts{Namespace: ours, Name: "mapping_entries", Help: "Entries of all sources that are in use."}),
		problems:           f.NewGaugeVec(prometheus.GaugeOpts{Namespace: ours, Name: "mapping_problems", Help: "What is wrong with entries now, by source."}, []string{"source"}),
		tableAge:           f.NewGauge(prometheus.GaugeOpts{Namespace: ours, Name: "mapping_changed_timestamp_seconds", Help: "When the mappings changed last."}),
		linesLeftOut:       counter(ours, "log_lines_left_out_total", "Lines about who is not let in which were not written because there were too many."),
	}
	lookups := counters(ours, "lookups_total", "Tokens of the right form: remembered (hit, hit_no) or verified (miss), and of the latter those that nobody could verify and whose maker was known (hit_outage).", "result")
	m.hit, m.hitNo, m.miss = lookups.WithLabelValues("hit"), lookups.WithLabelValues("hit_no"), lookups.WithLabelValues("miss")
	m.hitOutage = lookups.WithLabelValues("hit_outage")
	return m
}

// remembered exports the sizes of what is remembered.
func (m *Metrics) remembered(size func() (good, bad int)) {
	for which, of := range map[string]func() int{
		"identity": func() int { good, _ := size(); return good },
		"no":       func() int { _, bad := size(); return bad },
	} {
		promauto.With(m.registry).NewGaugeFunc(prometheus.GaugeOpts{
			Namespace: "muster_authenticator", Name: "remembered_tokens", Help: "Tokens that are remembered, by what is.", ConstLabels: prometheus.Labels{"what": which},
		}, func() float64 { return float64(of()) })
	}
}

// Observed counts an answer of STS.
func (m *Metrics) Observed(o tokenverify.Observation) {
	region := m.region(o)
	switch {
	case o.Status == 0:
		m.connectionFailures.WithLabelValues(region).Inc()
		return
	case o.Throttled():
		m.throttling.WithLabelValues(region).Inc()
	case o.Code == "RegionDisabledException":
		m.disabledRegion.Inc()
	}
	m.responses.WithLabelValues(strconv.Itoa(o.Status), region).Inc()
}

// region is the label of a region: its name if it answered once, and there are not too many.
func (m *Metrics) region(o tokenverify.Observation) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.regions[o.Region] || o.Known && len(m.regions) < mostRegions {
		m.regions[o.Region] = true
		return o.Region
	}
	return "other"
}

// Busy counts a question that was not asked.
func (m *Metrics) Busy(known bool) {
	label := "unknown"
	if known {
		label = "known"
	}
	m.busy.WithLabelValues(label).Inc()
}

// sources tells where mappings are.
func (m *Metrics) sources(file, only bool) {
	for gauge, is := range map[prometheus.Gauge]bool{m.fileEnabled: file, m.fileOnly: file && only} {
		gauge.Set(0)
		if is {
			gauge.Set(1)
		}
	}
}

// DescribedInstances counts a call of EC2.
func (m *Metrics) DescribedInstances() { m.describeInstances.Inc() }

// built tells of new mappings.
func (m *Metrics) built(entries int, problems []identity.Problem, now float64) {
	m.entries.Set(float64(entries))
	m.tableAge.Set(now)
	count := map[identity.Source]int{identity.SourceAccessEntry: 0, identity.SourceIdentityMapping: 0, identity.SourceAWSAuth: 0, identity.SourceFile: 0}
	for _, p := range problems {
		count[p.Source]++
	}
	for source, n := range count {
		m.problems.WithLabelValues(string(source)).Set(float64(n))
	}
}
