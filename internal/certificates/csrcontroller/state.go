// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"context"
	"math"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/policy"
)

// state is what is looked up when somebody reads the metrics: when certificates end, and how old the facts are.
type state struct {
	controller                           *Controller
	authority, newest, age, certificates *prometheus.Desc
}

func newState(c *Controller) *state {
	describe := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &state{
		controller:   c,
		authority:    describe("signing_certificate_expiry_timestamp_seconds", "When the signing certificate of a key ends.", "key"),
		newest:       describe("node_certificate_expiry_timestamp_seconds", "When the newest certificate of a node ends, of the node whose ends first.", "signer"),
		certificates: describe("recorded_certificates", "Certificates on record that have not ended, known to the replica that decides.", "signer"),
		age:          describe("source_age_seconds", "How long ago the answers of a source of facts were last known to be true; Inf if never.", "source"),
	}
}

// Describe implements prometheus.Collector.
func (s *state) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{s.authority, s.newest, s.certificates, s.age} {
		out <- d
	}
}

// collectWithin is how long a key that is elsewhere may take to tell its certificate.
const collectWithin = 5 * time.Second

// Collect implements prometheus.Collector.
func (s *state) Collect(out chan<- prometheus.Metric) {
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), collectWithin)
	defer cancel()
	for key, notAfter := range s.authorities(ctx) {
		gauge(s.authority, float64(notAfter.Unix()), key)
	}
	for source, age := range s.ages() {
		gauge(s.age, age, source)
	}
	if !s.controller.leading.Load() {
		return // nobody keeps this replica's register up to date
	}
	soonest, count := s.expiries()
	for signer, n := range count {
		gauge(s.certificates, float64(n), signer)
	}
	for signer, notAfter := range soonest {
		gauge(s.newest, float64(notAfter.Unix()), signer)
	}
}

func (s *state) authorities(ctx context.Context) map[string]time.Time {
	found := map[string]time.Time{}
	for _, i := range s.controller.config.Signers {
		if _, ok := found[i.Key]; ok || i.Signer == nil {
			continue
		}
		if c, err := i.Signer.Issuer(ctx); err == nil {
			found[i.Key] = c.NotAfter
		}
	}
	return found
}

// expiries returns, for each signer, the end of the newest certificate of the node whose newest ends first. Nodes that
// are gone do not count: nobody renews theirs.
func (s *state) expiries() (soonest map[string]time.Time, count map[string]int) {
	type holder struct{ signer, node string }
	newest := map[holder]time.Time{}
	count = map[string]int{}
	for _, e := range s.controller.config.Register.List() {
		if _, ours := s.controller.config.Signers[e.Signer]; !ours {
			continue
		}
		count[e.Signer]++
		h := holder{e.Signer, e.Node}
		if e.Node != "" && newest[h].Before(e.NotAfter) {
			newest[h] = e.NotAfter
		}
	}
	soonest = map[string]time.Time{}
	for h, notAfter := range newest {
		if f := s.controller.config.Nodes.Exists(h.node); f.State != policy.Known || !f.Value {
			continue
		}
		if old, ok := soonest[h.signer]; !ok || notAfter.Before(old) {
			soonest[h.signer] = notAfter
		}
	}
	return soonest, count
}

// ages returns how old the answers of each source are.
func (s *state) ages() map[string]float64 {
	c := s.controller.config
	ages := map[string]float64{}
	for _, source := range c.Inventory.Status() {
		ages[source.Name] = source.Age.Seconds()
		if !source.Synced {
			ages[source.Name] = math.Inf(1)
		}
	}
	// These two answer any question, so that of nobody is as good as another.
	now := c.Now()
	ages["nodes"] = ageOf(c.Nodes.Exists(""), now)
	if s.controller.leading.Load() {
		// A write that fails for a while is as bad as a failing read.
		ages["register"] = max(ageOf(c.Register.KeyOwner(pki.Fingerprint{}), now), c.Register.Stats().Waiting.Seconds())
	}
	return ages
}

func ageOf[T any](f policy.Fact[T], now time.Time) float64 {
	if f.State == policy.Unknown {
		return math.Inf(1)
	}
	return max(0, now.Sub(f.At).Seconds())
}
