// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"testing"
	"time"

	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/rulefmt"
	engine "github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
)

// samples are one series: its value at each minute.
type samples struct {
	metric string
	value  func(minutes float64) float64
}

// database answers queries of Prometheus from series in memory. Time begins at 0.
type database map[string]storage.Series

func (d database) add(t *testing.T, s samples, minutes int) {
	t.Helper()
	metric, err := promql().ParseMetric(s.metric)
	if err != nil {
		t.Fatalf("%s: %v", s.metric, err)
	}
	var list []chunks.Sample
	for half := range 2*minutes + 1 {
		list = append(list, sample{at: int64(half) * 30_000, value: s.value(float64(half) / 2)})
	}
	d[metric.String()] = storage.NewListSeries(metric, list)
}

// fires tells when an alert first fires that is looked at every minute, of however many series.
func (d database) fires(t *testing.T, r rulefmt.Rule, minutes int) (time.Duration, bool) {
	t.Helper()
	e := engine.NewEngine(engine.EngineOpts{MaxSamples: 1_000_000, Timeout: time.Minute, Parser: promql()})
	defer e.Close()
	held := time.Duration(-1) // how long it has been true, -1 if it is not
	for m := range minutes {
		query, err := e.NewInstantQuery(t.Context(), d, nil, r.Expr, time.Unix(int64(m)*60, 0))
		if err != nil {
			t.Fatalf("%s: %v", r.Alert, err)
		}
		result := query.Exec(t.Context())
		if result.Err != nil {
			t.Fatalf("%s: %v", r.Alert, result.Err)
		}
		vector, err := result.Vector()
		if err != nil {
			t.Fatalf("%s is no vector: %v", r.Alert, err)
		}
		empty := len(vector) == 0
		query.Close()
		switch {
		case empty:
			held = -1
			continue
		case held < 0:
			held = 0
		default:
			held += time.Minute
		}
		if held >= time.Duration(r.For) {
			return time.Duration(m) * time.Minute, true
		}
	}
	return 0, false
}

// Querier implements storage.Queryable.
func (d database) Querier(_, _ int64) (storage.Querier, error) { return querier{d}, nil }

type querier struct{ d database }

func (q querier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	var found []storage.Series
	for _, s := range q.d {
		matches := true
		for _, m := range matchers {
			matches = matches && m.Matches(s.Labels().Get(m.Name))
		}
		if matches {
			found = append(found, s)
		}
	}
	return &seriesSet{series: found, at: -1}
}

func (querier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (querier) Close() error { return nil }

type seriesSet struct {
	series []storage.Series
	at     int
}

func (s *seriesSet) Next() bool                        { s.at++; return s.at < len(s.series) }
func (s *seriesSet) At() storage.Series                { return s.series[s.at] }
func (s *seriesSet) Err() error                        { return nil }
func (s *seriesSet) Warnings() annotations.Annotations { return nil }

type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }
