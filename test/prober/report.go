// SPDX-License-Identifier: Apache-2.0

package prober

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/net/http2"
)

// maxFailures are kept of each thing that happened.
const maxFailures = 10

// Report is what a prober has seen.
type Report struct {
	// Rows are what was asked, by door, way and call.
	Rows []Row
	// Asked, Repeated and Failed are those of all rows; watches count in the last two.
	Asked, Repeated, Failed int
	// Watches have told of Events, and were begun again Resumed times after the server had ended them.
	Watches, Events, Resumed int
	// Latest is how long after its write had begun an event was told of, at most.
	Latest time.Duration
	// Causes are how many failed by what happened to them.
	Causes map[string]int
	// Failures are the first ones, each with what happened and when.
	Failures []string
	// Took is how long there was asked.
	Took time.Duration
}

// Row is what was asked of a door, by a way, with a call.
type Row struct {
	// Door, Way and Call name it.
	Door, Way, Call string
	// Asked, Repeated and Failed count requests.
	Asked, Repeated, Failed int
	// P50, P99 and Worst are how long requests took, from when they were due, with what was repeated of them.
	P50, P99, Worst time.Duration
}

// Report is what was seen so far.
func (p *Prober) Report() Report {
	p.mu.Lock()
	report := Report{Causes: maps.Clone(p.failed), Failures: slices.Clone(p.failures), Watches: len(p.watches), Took: time.Since(p.began)}
	if !p.ended.IsZero() {
		report.Took = p.ended.Sub(p.began)
	}
	p.mu.Unlock()
	for _, n := range report.Causes {
		report.Failed += n
	}
	for _, r := range p.rows {
		row := r.seen()
		report.Rows = append(report.Rows, row)
		report.Asked, report.Repeated = report.Asked+row.Asked, report.Repeated+row.Repeated
	}
	for _, w := range p.watches {
		w.mu.Lock()
		report.Events, report.Resumed, report.Repeated = report.Events+w.told, report.Resumed+w.resumed, report.Repeated+w.repeated
		report.Latest = max(report.Latest, w.latest)
		w.mu.Unlock()
	}
	return report
}

func (r *row) seen() Row {
	r.mu.Lock()
	defer r.mu.Unlock()
	row := Row{Door: r.way.door.Name, Way: r.way.name, Call: r.name, Asked: len(r.took), Repeated: r.repeated, Failed: r.failed}
	if took := slices.Sorted(slices.Values(r.took)); len(took) > 0 {
		row.P50, row.P99, row.Worst = took[len(took)/2], took[len(took)*99/100], took[len(took)-1]
	}
	return row
}

// String renders the report as a sheet, with the first failures one a line.
func (r Report) String() string {
	var text strings.Builder
	fmt.Fprintf(&text, "%d asked in %s, %.0f a second; %d repeated, %d failed%s; %d watches told of %d events, %s after the write at most, and were resumed %d times\n",
		r.Asked, r.Took.Round(time.Second), float64(r.Asked)/r.Took.Seconds(), r.Repeated, r.Failed, r.causes(), r.Watches, r.Events, r.Latest.Round(time.Millisecond), r.Resumed)
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "door\tway\tcall\tasked\trepeated\tfailed\tp50\tp99\tworst")
	for _, row := range r.Rows {
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\t%s\n", row.Door, row.Way, row.Call, row.Asked, row.Repeated, row.Failed,
			row.P50.Round(time.Millisecond), row.P99.Round(time.Millisecond), row.Worst.Round(time.Millisecond))
	}
	_ = table.Flush()
	for _, failure := range r.Failures {
		fmt.Fprintln(&text, failure)
	}
	return text.String()
}

// causes says how many failed of what.
func (r Report) causes() string {
	var all []string
	for _, happened := range slices.Sorted(maps.Keys(r.Causes)) {
		all = append(all, fmt.Sprintf("%s %d", happened, r.Causes[happened]))
	}
	if all == nil {
		return ""
	}
	return " (" + strings.Join(all, ", ") + ")"
}

// cause says in a word what happened to a request.
func cause(err error) string {
	var network net.Error
	var refused http2.StreamError
	var status *statusError
	switch {
	case errors.As(err, &status):
		return "answered"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return "timed out"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.As(err, &refused) && refused.Code == http2.ErrCodeRefusedStream:
		return "full"
	case errors.Is(err, errCut), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, net.ErrClosed),
		err != nil && strings.Contains(err.Error(), "http2: client conn"):
		return "cut"
	}
	return "failed"
}
