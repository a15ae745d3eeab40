// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/logfunction"
	"muster.dev/muster/internal/aws/logsinsights/logvalue"
)

const (
	// mostSeries is how many series a chart has, and mostBars how many bars each of them.
	mostSeries, mostBars = 8, 500
	// Charts are drawn on a sheet that is 1000 wide and 100 high.
	chartWidth, chartHeight = 1000.0, 100.0
)

// Chart shows values of stats by periods of time: a series for each value of stats, and each group of the fields that stats is by besides.
type Chart struct {
	// Start and End are where the axis of time begins and ends.
	Start, End time.Time
	Series     []Series
	// Left is how many series are left out.
	Left int
}

// Series are the values of one name in their order of time. Least and Most are the scale, which all series of one value of stats share.
type Series struct {
	Name        string
	Of          string // the group, such as verb=get; empty where all rows are one group
	Least, Most float64
	Bars        []Bar
}

// Bar is one value. X, Y, Width and Height are its place on a sheet of 1000 times 100.
type Bar struct {
	At                  time.Time
	Value               float64
	X, Y, Width, Height float64
}

// axis is the period of time that rows are of: its column, and where the period ends that begins at a moment.
type axis struct {
	column string
	end    func(time.Time) time.Time
}

// NewChart is the chart of an answer whose rows are of a stats command by bin, datefloor or dateceil. It is nil for another answer, and for
// one that lacks a field that its groups are by, or has too many periods.
func NewChart(query *logsinsights.Query, a *LogAnswer) *Chart {
	stats := lastStats(query)
	if stats == nil || !a.End.After(a.Start) {
		return nil
	}
	by, groups := axisOf(stats)
	if by.end == nil || !slices.Contains(a.Columns, by.column) || slices.ContainsFunc(groups, func(name string) bool { return !slices.Contains(a.Columns, name) }) {
		return nil
	}
	c := &Chart{Start: a.Start, End: a.End}
	for _, item := range stats.Items {
		if slices.Contains(a.Columns, item.Name) {
			c.Series = append(c.Series, seriesOf(a, item.Name, by, groups)...)
		}
	}
	if len(c.Series) == 0 || slices.ContainsFunc(c.Series, func(s Series) bool { return len(s.Bars) > mostBars }) {
		return nil
	}
	c.Left = max(0, len(c.Series)-mostSeries)
	c.Series = c.Series[:len(c.Series)-c.Left]
	return c
}

// lastStats is the stats command that makes the rows of the answer; nil for a query without one.
func lastStats(query *logsinsights.Query) *logsinsights.Stats {
	if query == nil {
		return nil
	}
	for _, command := range slices.Backward(query.Commands) {
		switch command := command.(type) {
		case *logsinsights.Stats:
			return command
		case *logsinsights.Pattern, *logsinsights.Unnest:
			return nil
		}
	}
	return nil
}

// axisOf is the first period of time that stats is by, and the names of all else that it is by.
func axisOf(stats *logsinsights.Stats) (by axis, groups []string) {
	for _, item := range stats.By {
		if period, ok := periodOf(item.Value); ok && by.end == nil {
			by = axis{item.Name, func(at time.Time) time.Time { return time.UnixMilli(period.Ceil(at.UnixMilli() + 1)).UTC() }}
			continue
		}
		groups = append(groups, item.Name)
	}
	return by, groups
}

// periodOf is the period of a call of bin, datefloor or dateceil.
func periodOf(e logsinsights.Expression) (logfunction.Period, bool) {
	call, ok := e.(*logsinsights.Call)
	if !ok || len(call.Function.Periods) != 1 || call.Function.Periods[0] >= len(call.Arguments) {
		return logfunction.Period{}, false
	}
	literal, ok := call.Arguments[call.Function.Periods[0]].(*logsinsights.Literal)
	if !ok {
		return logfunction.Period{}, false
	}
	return logfunction.ParsePeriod(literal.Value.String())
}

// seriesOf are the series of a value of stats, the largest first.
func seriesOf(a *LogAnswer, name string, by axis, groups []string) []Series {
	var all []Series
	least, most := 0.0, 0.0
	places := map[string]int{}
	for _, row := range a.Rows {
		at, err := time.Parse(logvalue.TimeFormat, row[by.column])
		if err != nil {
			continue // an event that has no time of that kind
		}
		value, err := strconv.ParseFloat(row[name], 64)
		if err != nil || value-value != 0 { // no number, or an infinite one
			continue
		}
		var of []string
		for _, group := range groups {
			of = append(of, group+"="+row[group])
		}
		key := strings.Join(of, ", ")
		place, ok := places[key]
		if !ok {
			place = len(all)
			places[key] = place
			all = append(all, Series{Name: name, Of: key})
		}
		least, most = min(least, value), max(most, value)
		all[place].Bars = append(all[place].Bars, Bar{At: at, Value: value})
	}
	for i := range all {
		s := &all[i]
		s.Least, s.Most = least, most
		slices.SortFunc(s.Bars, func(a, b Bar) int { return a.At.Compare(b.At) })
		for j := range s.Bars {
			s.Bars[j].place(a.Start, a.End, by.end(s.Bars[j].At), least, most)
		}
	}
	slices.SortStableFunc(all, func(a, b Series) int { return cmp.Or(cmp.Compare(b.size(), a.size()), strings.Compare(a.Of, b.Of)) })
	return all
}

// size is how much there is of the series.
func (s Series) size() (sum float64) {
	for _, b := range s.Bars {
		sum += max(b.Value, -b.Value)
	}
	return sum
}

// place puts the bar of a period that ends at a moment on the sheet, as far as the period is on the axis. Bars begin at zero.
func (b *Bar) place(start, end, until time.Time, least, most float64) {
	on := func(at time.Time) float64 {
		return min(chartWidth, max(0, chartWidth*at.Sub(start).Seconds()/end.Sub(start).Seconds()))
	}
	const gap, thinnest = 0.9, 1.0
	b.X = min(on(b.At), chartWidth-thinnest)
	b.Width = max(thinnest, (on(until)-b.X)*gap)
	if scale := max(most, -least); most > least { // values of a scale from -1 to 1, since the difference of large ones is infinite
		most, least, value := most/scale, least/scale, b.Value/scale
		b.Y = chartHeight * (most - max(value, 0)) / (most - least)
		b.Height = chartHeight * max(value, -value) / (most - least)
	} else {
		b.Y = chartHeight
	}
	b.X, b.Y, b.Width, b.Height = tenth(b.X), tenth(b.Y), tenth(b.Width), tenth(b.Height)
}

// tenth is a place rounded to what a browser can show.
func tenth(n float64) float64 { return float64(int64(n*10+0.5)) / 10 }
