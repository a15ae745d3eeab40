// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result is one system under one load in one round, or the median of all rounds. Costs are per request.
type result struct {
	System string `json:"system"`
	Load   string `json:"load"`
	Kind   string `json:"kind"`
	Size   int    `json:"size"`
	Round  int    `json:"round"` // of a median: how many

	P50     float64 `json:"p50Milliseconds"`
	P99     float64 `json:"p99Milliseconds"`
	Max     float64 `json:"maxMilliseconds"`
	Seconds float64 `json:"seconds"`
	Rate    float64 `json:"issuedPerSecond"`

	PerCSR        float64            `json:"requestsPerCSR"` // without the kubelet's own
	Reviews       float64            `json:"accessReviewsPerCSR"`
	Requests      map[string]float64 `json:"requests"`
	ControllerCPU float64            `json:"controllerCPUMilliseconds"`
	APIServerCPU  float64            `json:"apiServerCPUMilliseconds"`
	EtcdCPU       float64            `json:"etcdCPUMilliseconds"`
	GeneratorCPU  float64            `json:"generatorCPUMilliseconds"`
	Peak          float64            `json:"controllerPeakMiB"`
	Refused       float64            `json:"answers429"`

	// Percent of the processors' time, until the last certificate.
	Idle   float64 `json:"idlePercent"`
	Others float64 `json:"othersPercent"` // spent by what is no part of this

	// Ratios of the rates of a burst, medians of rounds; 0 if there is nothing to compare with.
	ToFloor   float64 `json:"toFloor,omitempty"`
	ToRaised  float64 `json:"toRaised,omitempty"`
	ToDefault float64 `json:"toDefault,omitempty"`
}

// report is what the benchmark has to say.
type report struct {
	started time.Time
	options options
	results []result
	leftOut []string
}

func (r *report) begin(o options) { r.started, r.options = time.Now(), o }

func (r *report) add(one result) { r.results = append(r.results, one) }

// loadNames are all loads, small ones first, steady ones last.
func (r *report) loadNames() []string {
	byName := map[string]result{}
	for _, one := range r.results {
		byName[one.Load] = one
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		x, y := byName[a], byName[b]
		if steady := strings.HasPrefix(a, "steady"); steady != strings.HasPrefix(b, "steady") {
			if steady {
				return 1
			}
			return -1
		}
		if x.Kind != y.Kind {
			return strings.Compare(x.Kind, y.Kind)
		}
		return x.Size - y.Size
	})
	return names
}

// medians are the rows of one load, in the order of the systems.
func (r *report) medians(load string) (rows []result) {
	for _, system := range r.options.systems {
		var rounds []result
		for _, one := range r.results {
			if one.Load == load && one.System == system {
				rounds = append(rounds, one)
			}
		}
		if len(rounds) > 0 {
			rows = append(rows, r.median(rounds))
		}
	}
	return rows
}

func (r *report) median(rounds []result) result {
	m := rounds[0]
	m.Round = len(rounds)
	for _, field := range []func(*result) *float64{
		func(r *result) *float64 { return &r.P50 }, func(r *result) *float64 { return &r.P99 }, func(r *result) *float64 { return &r.Max },
		func(r *result) *float64 { return &r.Seconds }, func(r *result) *float64 { return &r.Rate },
		func(r *result) *float64 { return &r.PerCSR }, func(r *result) *float64 { return &r.Reviews },
		func(r *result) *float64 { return &r.ControllerCPU }, func(r *result) *float64 { return &r.APIServerCPU },
		func(r *result) *float64 { return &r.EtcdCPU }, func(r *result) *float64 { return &r.GeneratorCPU },
		func(r *result) *float64 { return &r.Peak }, func(r *result) *float64 { return &r.Refused },
		func(r *result) *float64 { return &r.Idle }, func(r *result) *float64 { return &r.Others },
	} {
		var values []float64
		for i := range rounds {
			values = append(values, *field(&rounds[i]))
		}
		*field(&m) = middle(values)
	}
	if !strings.HasPrefix(m.Load, "steady") {
		m.ToFloor = r.ratio(rounds, "floor-16", "floor-64")
		m.ToRaised = r.ratio(rounds, "kcm-raised")
		m.ToDefault = r.ratio(rounds, "kcm")
	}
	return m
}

// ratio compares each round with the fastest of the others in the same round, or, where those ran in fewer rounds, in
// any.
func (r *report) ratio(rounds []result, others ...string) float64 {
	var ratios []float64
	for _, one := range rounds {
		same, ever := 0.0, 0.0
		for _, other := range r.results {
			if other.Load != one.Load || !slices.Contains(others, other.System) {
				continue
			}
			ever = max(ever, other.Rate)
			if other.Round == one.Round {
				same = max(same, other.Rate)
			}
		}
		if same == 0 {
			same = ever
		}
		if same > 0 {
			ratios = append(ratios, one.Rate/same)
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	return middle(ratios)
}

func middle(values []float64) float64 {
	slices.Sort(values)
	if n := len(values); n%2 == 0 {
		return (values[n/2-1] + values[n/2]) / 2
	}
	return values[len(values)/2]
}

func (r *report) writeJSON(w io.Writer) error {
	out := struct {
		Date    string   `json:"date"`
		CPUs    int      `json:"cpus"`
		Go      string   `json:"go"`
		Rounds  int      `json:"rounds"`
		Medians []result `json:"medians"`
		Results []result `json:"results"`
		LeftOut []string `json:"leftOut"`
	}{Date: r.started.UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Go: runtime.Version(), Rounds: r.options.rounds, Results: r.results, LeftOut: r.leftOut}
	for _, load := range r.loadNames() {
		out.Medians = append(out.Medians, r.medians(load)...)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func (r *report) writeTable(w io.Writer) error {
	p := &printer{w: w}
	p.printf("%s, %d CPUs, %s; medians of %d rounds (kcm: %d), %s in all\n", r.started.Format(time.DateOnly), runtime.NumCPU(), runtime.Version(),
		r.options.rounds, r.options.slowRounds, time.Since(r.started).Round(time.Second))
	p.printf("ms from before a request is created until its certificate is seen; requests, access reviews and CPU are per request;\n")
	p.printf("a ratio compares issued/s with the faster floor, kcm-raised and kcm in the same round\n")
	for _, load := range r.loadNames() {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
		tp := &printer{w: t}
		tp.printf("\n%s\tissued/s\tp50 ms\tp99\tmax\trequests\treviews\tCPU ms: controller\tAPI server\tetcd\tload\tpeak MiB\t429s\tidle %%\tothers %%\tto floor\tto raised\tto default\t\n", load)
		for _, m := range r.medians(load) {
			tp.printf("%s\t%.0f\t%.1f\t%.1f\t%.1f\t%.2f\t%.3f\t%.2f\t%.2f\t%.2f\t%.2f\t%.1f\t%.0f\t%.0f\t%.0f\t%s\t%s\t%s\t\n", m.System, m.Rate, m.P50, m.P99, m.Max,
				m.PerCSR, m.Reviews, m.ControllerCPU, m.APIServerCPU, m.EtcdCPU, m.GeneratorCPU, m.Peak, m.Refused, m.Idle, m.Others, ratio(m.ToFloor), ratio(m.ToRaised), ratio(m.ToDefault))
		}
		if p.err == nil {
			p.err = tp.err
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	r.writeAims(p)
	if len(r.leftOut) > 0 {
		p.printf("\nleft out:\n")
		for _, line := range r.leftOut {
			p.printf("  %s\n", line)
		}
	}
	return p.err
}

func ratio(v float64) string {
	if v == 0 {
		return "-"
	}
	return fmt.Sprintf("%.2f", v)
}

// printer remembers the first error, so that each line need not.
type printer struct {
	w   io.Writer
	err error
}

func (p *printer) printf(format string, args ...any) {
	if p.err == nil {
		_, p.err = fmt.Fprintf(p.w, format, args...)
	}
}
