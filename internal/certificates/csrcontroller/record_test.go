// SPDX-License-Identifier: Apache-2.0

package csrcontroller

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"muster.dev/muster/internal/certificates/pki"
	"muster.dev/muster/internal/certificates/pki/pkitest"
)

// A hard no is told where people look: on the Node, too, if there is one.
func TestDenialsAreToldOnTheNode(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.machine(12)
		w.nodes.set(nodeName(11), true)
		w.nodes.set(nodeName(13), true)
	})
	w.create(serving(t, "greedy", 11, address(12)), serving(t, "unknown", 12, address(11)))
	w.becomes("greedy", "Denied/address-assigned")
	w.becomes("unknown", "Denied/address-assigned") // node 12 does not exist
	w.until("both are told", func() bool { return len(w.events.all()) == 2 })
	// A node that asks for the name of another: it is its own Node that people look at.
	w.create(object("thief", pki.SignerKubeletServing, pkitest.Kubelet(t, nodeName(12), address(12)), "system:node:"+nodeName(11), "system:nodes"))
	w.becomes("thief", "Denied/requester-name")
	w.until("it is told", func() bool { return len(w.events.all()) == 3 }) // who decides and who tells do not wait for one another
	// A token of one machine that is used for another that is a node.
	w.create(object("stolen", pki.SignerKubeletClient, pkitest.Kubelet(t, nodeName(11)), "system:bootstrap:abcdef", "system:bootstrappers", "system:bootstrappers:muster:"+machineID(12)))
	w.becomes("stolen", "Denied/bootstrap-machine")
	w.until("it is told, too", func() bool { return len(w.events.all()) == 4 })
	// A wait is reported on the request alone.
	w.create(serving(t, "early", 13, address(13)))
	w.until("all are told", func() bool { return len(w.events.all()) == 5 })
	var got []string
	for _, e := range w.events.aboutNodes() {
		if !strings.HasSuffix(e, " (M-TLS-38)") {
			t.Errorf("%q does not have the cause at its end", e)
		}
		got = append(got, strings.Join(strings.Fields(e)[:8], " "))
	}
	about := "Node " + nodeName(11) + " uid=" + nodeName(11) + " Warning CertificateDenied certificate request "
	if want := []string{about + "greedy:", about + "thief:", about + "stolen:"}; !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

func TestMetrics(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.config.Workers = 16
		w.nodes.set(nodeName(11), true)
		w.nodes.set(nodeName(12), true)
		w.machine(12)
		w.machine(99)
	})
	w.create(serving(t, "good", 11, address(11)), serving(t, "bad", 11, address(99)), serving(t, "early", 13, address(13)))
	w.becomes("good", wasIssued)
	w.becomes("bad", "Denied/address-assigned")
	w.issuance(pki.SignerKubeletServing, func(i *Issuance) { i.Duration = time.Hour })
	w.create(serving(t, "short", 12, address(12)))
	w.becomes("short", wasIssued)
	for n, name := range []string{"gone-1", "gone-2", "gone-3"} {
		w.create(serving(t, name, 14, address(14)))
		w.until("it waits", func() bool { return len(w.events.all()) == 3+n })
	}
	s := pki.SignerKubeletServing
	ends := float64(w.certificate("good").NotAfter.Unix())
	if w.certificate("short").NotAfter.Before(w.certificate("good").NotAfter) {
		ends = float64(w.certificate("short").NotAfter.Unix())
	}
	want := map[string]float64{
		"decisions_total  " + s + " Approve":                    2,
		"decisions_total address-assigned " + s + " Deny":       1,
		"decisions_total machine " + s + " Wait":                4,
		"rule_outcomes_total Refuse address-assigned " + s:      1,
		"rule_outcomes_total Pass shape " + s:                   7,
		"approve_duration_seconds " + s:                         2,
		"sign_duration_seconds " + s:                            2,
		"issue_duration_seconds " + s:                           2,
		"pruned_total " + s:                                     1,
		"queue_depth ":                                          0,
		"waiting ":                                              3,
		"leader ":                                               1,
		"workers ":                                              16,
		"signing_certificate_expiry_timestamp_seconds kubelets": float64(w.ca.NotAfter.Unix()),
		"node_certificate_expiry_timestamp_seconds " + s:        ends,
		"recorded_certificates " + s:                            2,
		"source_age_seconds fake":                               0,
	}
	var got map[string]float64
	var missing string
	defer func() {
		if t.Failed() {
			t.Log(missing)
		}
	}()
	w.until("all is counted", func() bool {
		got = w.gather()
		for name, value := range want {
			if v, ok := got[namespace+"_"+name]; !ok || v != value {
				missing = fmt.Sprintf("%s is %v %t, want %v", name, v, ok, value)
				return false
			}
		}
		return true
	})
	for name := range got {
		if strings.Contains(name, "NotApplicable") {
			t.Errorf("%s is counted", name)
		}
	}
	defer func() {
		w.register.stick(true)
		if age := w.gather()[namespace+"_source_age_seconds register"]; age != 3600 {
			t.Errorf("age of a register that cannot write: %v", age)
		}
	}()
	for _, source := range []string{"nodes", "register"} {
		if age, ok := got[namespace+"_source_age_seconds "+source]; !ok || age > 60 {
			t.Errorf("age of %s: %v %t", source, age, ok)
		}
	}
}

// gather returns all metrics by name and labels; of histograms, how often something was observed.
func (w *world) gather() map[string]float64 {
	w.t.Helper()
	return gathered(w.t, w.registry)
}

func gathered(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[f.GetName()+" "+strings.Join(labels, " ")] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
		}
	}
	return got
}

// The newest certificate of each node counts, and nodes that are gone do not.
func TestExpiries(t *testing.T) {
	w := prepareWorld(t)
	now := time.Now()
	w.nodes.set("a", true)
	w.nodes.set("b", true)
	for n, e := range []struct {
		node string
		left int // hours
	}{{"a", 1}, {"a", 9}, {"b", 5}, {"b", 2}, {"gone", 3}, {"", 4}} {
		entry := w.entry(string(rune('0'+n)), e.node, now.Add(time.Duration(e.left)*time.Hour))
		w.register.Add(entry)
	}
	w.run()
	soonest, count := newState(w.Controller).expiries()
	if got := soonest[pki.SignerKubeletServing].Sub(now).Round(time.Hour); got != 5*time.Hour || count[pki.SignerKubeletServing] != 6 {
		t.Errorf("%s, of %d", got, count[pki.SignerKubeletServing])
	}
}

func TestBegan(t *testing.T) {
	seen := time.Date(2026, 11, 1, 12, 0, 0, 5e8, time.UTC)
	for created, want := range map[time.Time]time.Time{
		{}:                                 seen,
		seen.Truncate(time.Second):         seen,
		seen.Add(-1500 * time.Millisecond): seen,
		seen.Add(-time.Minute):             seen.Add(-time.Minute),
		seen.Add(time.Minute):              seen, // clocks differ
	} {
		csr := &certificatesv1.CertificateSigningRequest{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(created)}}
		if got := began(csr, seen); !got.Equal(want) {
			t.Errorf("created %s: %s", created, got)
		}
	}
}
