// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"
)

// result is one measurement of one round, or the median of all rounds.
type result struct {
	Part    string `json:"part"`
	System  string `json:"system"`
	Bad     string `json:"bad,omitempty"`  // the kind of bad tokens
	Load    string `json:"load,omitempty"` // of a flood or through the API server
	Callers int    `json:"callers,omitempty"`
	Round   int    `json:"round"` // of a median: how many

	Rate   float64 `json:"perSecond"`
	CPU    float64 `json:"cpuMicroseconds"` // of the verifying process, each
	Allocs float64 `json:"allocations,omitempty"`
	Bytes  float64 `json:"bytes,omitempty"`

	P50 float64 `json:"p50Milliseconds,omitempty"`
	P99 float64 `json:"p99Milliseconds,omitempty"`
	Max float64 `json:"maxMilliseconds,omitempty"`
	Lag float64 `json:"lagP99Milliseconds,omitempty"` // of the load, behind its own plan

	Before float64 `json:"heapMiBBefore,omitempty"` // of a flood: in use after a collection
	Heap   float64 `json:"heapMiBAtMost,omitempty"`
	Peak   float64 `json:"residentMiBPeak,omitempty"`

	Refused      float64 `json:"goodRefused,omitempty"`
	APIServerCPU float64 `json:"apiServerCPUMicroseconds,omitempty"`
	APIServerMiB float64 `json:"apiServerResidentMiB,omitempty"`
	LoadCPU      float64 `json:"loadCPUMicroseconds,omitempty"` // of the benchmark itself

	// Ratios of the rate to that of aws-iam-authenticator in the same round, medians; 0 if there is nothing to compare
	// with.
	ToShipped float64 `json:"toShipped,omitempty"`
	ToPool    float64 `json:"toPool,omitempty"`
}

// fields are the figures of a result.
func (r *result) fields() []*float64 {
	return []*float64{
		&r.Rate, &r.CPU, &r.Allocs, &r.Bytes, &r.P50, &r.P99, &r.Max, &r.Lag, &r.Before, &r.Heap, &r.Peak, &r.Refused, &r.APIServerCPU, &r.APIServerMiB, &r.LoadCPU,
	}
}

// row is what a result is about, whatever its round and system.
type row struct {
	part, bad, load string
	callers         int
}

func (r result) row() row { return row{r.Part, r.Bad, r.Load, r.Callers} }

// report is what the benchmark has to say.
type report struct {
	started time.Time
	options options
	results []result
	others  []float64 // percent of the CPUs that others used during each system's part
}

func (r *report) begin(o options) { r.started, r.options = time.Now(), o }

func (r *report) add(one result) { r.results = append(r.results, one) }

// rows are all there are, in the order of the parts.
func (r *report) rows() (rows []row) {
	for _, part := range partNames() {
		for _, one := range r.results {
			if one.Part == part && !slices.Contains(rows, one.row()) {
				rows = append(rows, one.row())
			}
		}
	}
	return rows
}

// medians are those of one row, in the order of the systems.
func (r *report) medians(of row) (all []result) {
	for _, system := range systemNames() {
		var rounds []result
		for _, one := range r.results {
			if one.row() == of && one.System == system {
				rounds = append(rounds, one)
			}
		}
		if len(rounds) > 0 {
			all = append(all, r.median(rounds))
		}
	}
	return all
}

func (r *report) median(rounds []result) result {
	m := rounds[0]
	m.Round = len(rounds)
	for n, field := range m.fields() {
		var values []float64
		for i := range rounds {
			values = append(values, *rounds[i].fields()[n])
		}
		*field = middle(values)
	}
	m.ToShipped, m.ToPool = r.ratio(rounds, "shipped"), r.ratio(rounds, "pool")
	return m
}

// ratio compares each round's rate with that of another system in the same round.
func (r *report) ratio(rounds []result, system string) float64 {
	var ratios []float64
	for _, one := range rounds {
		for _, other := range r.results {
			if other.System == system && other.row() == one.row() && other.Round == one.Round && other.Rate > 0 {
				ratios = append(ratios, one.Rate/other.Rate)
			}
		}
	}
	if len(ratios) == 0 {
		return 0
	}
	return middle(ratios)
}

func middle(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	values = slices.Sorted(slices.Values(values))
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
		Others  float64  `json:"othersPercent"`
		Medians []result `json:"medians"`
		Results []result `json:"results"`
	}{Date: r.started.UTC().Format(time.RFC3339), CPUs: runtime.NumCPU(), Go: runtime.Version(), Rounds: r.options.rounds, Others: middle(r.others), Results: r.results}
	for _, of := range r.rows() {
		out.Medians = append(out.Medians, r.medians(of)...)
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(out)
}

func (r *report) writeTable(w io.Writer) error {
	p := &printer{w: w}
	p.printf("%s, %d CPUs, %s; medians of %d rounds, %s in all\n", r.started.Format(time.DateOnly), runtime.NumCPU(), runtime.Version(),
		r.options.rounds, time.Since(r.started).Round(time.Second))
	p.printf("other processes used %.0f%% of the CPUs (median), %.0f%% at most\n", middle(r.others), slices.Max(append(r.others, 0)))
	p.printf("CPU is that of the verifying process; a ratio compares rates with aws-iam-authenticator's in the same round\n\n")
	for _, s := range systems() {
		p.printf("  %-13s %s\n", s.name, s.what)
	}
	for _, of := range r.rows() {
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
		tp := &printer{w: t}
		r.writeRow(tp, of)
		if p.err == nil {
			p.err = tp.err
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	r.writeAims(p)
	return p.err
}

func (r *report) writeRow(p *printer, of row) {
	switch of.part {
	case partVerify, partRefused:
		title := fmt.Sprintf("good tokens, %d callers", of.callers)
		if of.part == partRefused {
			title = fmt.Sprintf("refused: %s, %d callers", of.bad, of.callers)
		}
		p.printf("\n%s\t/s\tCPU µs\tallocations\tKB\tto shipped\tto pool\t\n", title)
		for _, m := range r.medians(of) {
			p.printf("%s\t%.0f\t%.2f\t%.0f\t%.1f\t%s\t%s\t\n", m.System, m.Rate, m.CPU, m.Allocs, m.Bytes/1000, ratio(m.ToShipped), ratio(m.ToPool))
		}
	case partFlood:
		p.printf("\n%s\tbad/s\tgood p50 ms\tp99\tmax\theap MiB before\tat most\tresident peak\t\n", of.load)
		for _, m := range r.medians(of) {
			p.printf("%s\t%.0f\t%.3f\t%.2f\t%.1f\t%.1f\t%.1f\t%.0f\t\n", m.System, m.Rate, m.P50, m.P99, m.Max, m.Before, m.Heap, m.Peak)
		}
	case partReview:
		p.printf("\n%s\t/s\tp50 ms\tp99\tmax\tlag p99\tCPU µs: authenticator\tAPI server\tload\tMiB: authenticator\tAPI server\trefused\t\n", of.load)
		for _, m := range r.medians(of) {
			p.printf("%s\t%.0f\t%.2f\t%.2f\t%.1f\t%.2f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t%.0f\t\n",
				m.System, m.Rate, m.P50, m.P99, m.Max, m.Lag, m.CPU, m.APIServerCPU, m.LoadCPU, m.Peak, m.APIServerMiB, m.Refused)
		}
	}
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
