// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights/evaluation"
)

// line is an event as the plain recomputation sees it: all fields as text.
type line map[string]string

// plainly returns events as lines, the newest first.
func plainly(events []*evaluation.Event) []line {
	sorted := slices.Clone(events)
	sort.SliceStable(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		return a.Timestamp > b.Timestamp || a.Timestamp == b.Timestamp && a.Pointer > b.Pointer
	})
	all := make([]line, len(sorted))
	for i, e := range sorted {
		l := line{"ms": strconv.FormatInt(e.Timestamp, 10)}
		maps.Copy(l, e.Fields)
		l["@timestamp"], l["@ingestionTime"] = clock(e.Timestamp), clock(e.Ingested)
		l["@message"], l["@logStream"], l["@log"] = e.Message, e.Stream, e.Log
		all[i] = l
	}
	return all
}

func clock(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000") }

func (l line) number(name string) float64 {
	n, err := strconv.ParseFloat(l[name], 64)
	if err != nil {
		return -1e300
	}
	return n
}

func (l line) has(name string) bool { _, ok := l[name]; return ok }

func (l line) time() int64 { n, _ := strconv.ParseInt(l["ms"], 10, 64); return n }

// with returns the line with one more field.
func (l line) with(name, value string) line {
	more := maps.Clone(l)
	more[name] = value
	return more
}

func keep(all []line, holds func(line) bool) []line {
	var kept []line
	for _, l := range all {
		if holds(l) {
			kept = append(kept, l)
		}
	}
	return kept
}

// change makes a line of each line.
func change(all []line, to func(line) line) []line {
	changed := make([]line, len(all))
	for i, l := range all {
		changed[i] = to(l)
	}
	return changed
}

func first(n int, all []line) []line { return all[:min(n, len(all))] }

func oldest(all []line) []line {
	all = slices.Clone(all)
	sort.SliceStable(all, func(i, j int) bool { return all[i].time() < all[j].time() })
	return all
}

// by sorts by the numbers of a field, the largest first.
func largest(name string, all []line) []line {
	all = slices.Clone(all)
	sort.SliceStable(all, func(i, j int) bool { return all[i].number(name) > all[j].number(name) })
	return all
}

// show prints fields as the test prints results.
func show(all []line, names ...string) []string {
	shown := make([]string, len(all))
	for i, l := range all {
		var words []string
		for _, name := range names {
			if value, ok := l[name]; ok {
				words = append(words, name+"="+value)
			}
		}
		shown[i] = strings.Join(words, " ")
	}
	return shown
}

// group is lines with the same texts in some fields.
type group struct {
	key   []string
	lines []line
}

// groups returns the groups by fields, sorted by their keys. A key that is missing is "".
func groups(all []line, names ...string) []group {
	byKey := map[string]*group{}
	for _, l := range all {
		key := make([]string, len(names))
		for i, name := range names {
			key[i] = l[name]
		}
		joined := strings.Join(key, "\x00")
		if byKey[joined] == nil {
			byKey[joined] = &group{key: key}
		}
		byKey[joined].lines = append(byKey[joined].lines, l)
	}
	var sorted []group
	for _, joined := range slices.Sorted(maps.Keys(byKey)) {
		sorted = append(sorted, *byKey[joined])
	}
	return sorted
}

// tally makes a line of each group: its key, and what the function finds in it under the name as.
func tally(all []line, as string, find func([]line) string, names ...string) []line {
	var found []line
	for _, g := range groups(all, names...) {
		l := line{}
		for i, name := range names {
			if g.key[i] != "" {
				l[name] = g.key[i]
			}
		}
		if value := find(g.lines); value != "" {
			l[as] = value
		}
		found = append(found, l)
	}
	return found
}

func size(all []line) string { return strconv.Itoa(len(all)) }

// sorted returns the numbers of a field in their order.
func sorted(all []line, name string) []float64 {
	var numbers []float64
	for _, l := range all {
		if n, err := strconv.ParseFloat(l[name], 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	sort.Float64s(numbers)
	return numbers
}

func format(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
