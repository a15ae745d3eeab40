// SPDX-License-Identifier: Apache-2.0

package logstoretest

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/logevent"
)

// The filters that Muster asks with, at least in the beginning.
var (
	equals  = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"):=("(?:[^"\\]|\\.)*")(\*?)`)
	oneOf   = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"):in\(([^)]*)\)`)
	atLeast = regexp.MustCompile(`^("(?:[^"\\]|\\.)*"):>=(\d+)`)
	within  = regexp.MustCompile(`^_time:\[(\S+), (\S+)\]`)
	sorted  = regexp.MustCompile(`^sort by \(_time( desc)?\) offset (\d+) limit 1$`)
)

const messageLength = `len("_msg") as "_msg"`

const byStream = `stats by ("@logStream") min(_time) as oldest, max(_time) as newest`

// query answers the queries that Muster has.
func (s *Server) query(text string) (status int, body string) {
	if len(text) > logevent.MaxQuery {
		return http.StatusBadRequest, "the `query` arg length cannot exceed -search.maxQueryLen"
	}
	parts := pipes(text)
	passes, err := filter(parts[0])
	if err != nil {
		return http.StatusBadRequest, "cannot parse query: " + err.Error()
	}
	s.queries = append(s.queries, text)
	var rows []Row
	for _, row := range slices.Concat(s.disk, s.memory) {
		if passes(row) {
			rows = append(rows, row)
		}
	}
	for _, pipe := range parts[1:] {
		if rows, err = piped(rows, pipe); err != nil {
			return http.StatusBadRequest, "cannot parse query: " + err.Error()
		}
	}
	var out strings.Builder
	for _, row := range rows {
		line, err := json.Marshal(row)
		if err != nil {
			return http.StatusInternalServerError, err.Error()
		}
		out.Write(append(line, '\n'))
	}
	return http.StatusOK, out.String()
}

// deletes begins to delete the rows that a filter selects.
func (s *Server) deletes(text string) (status int, body string) {
	passes, err := filter(text)
	if err != nil || text == "" {
		return http.StatusBadRequest, fmt.Sprint("cannot parse filter: ", err)
	}
	s.deleting = append(s.deleting, passes)
	return http.StatusOK, `{"task_id":"` + strconv.Itoa(len(s.deleting)) + `"}`
}

func (s *Server) tasks(fault Fault) (status int, body string) {
	if fault == Stays {
		return http.StatusOK, `[{"task_id":"` + strconv.Itoa(len(s.deleting)) + `","filter":"x"}]`
	}
	for _, passes := range s.deleting {
		s.disk, s.memory = slices.DeleteFunc(s.disk, passes), slices.DeleteFunc(s.memory, passes)
	}
	return http.StatusOK, "[]"
}

// pipes cuts a query at each | that is not in quotes.
func pipes(text string) (parts []string) {
	quoted, begin := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case quoted && text[i] == '\\':
			i++
		case text[i] == '"':
			quoted = !quoted
		case text[i] == '|' && !quoted:
			parts, begin = append(parts, strings.TrimSpace(text[begin:i])), i+1
		}
	}
	return append(parts, strings.TrimSpace(text[begin:]))
}

// filter is what of a filter is decided here: fields that are equal to a text or begin with it, and times. Other filters
// pass all, so the one who asks has to look again.
func filter(text string) (func(Row) bool, error) {
	var all []func(Row) bool
	for text != "" {
		var one func(Row) bool
		var err error
		var length int
		if found := equals.FindStringSubmatch(text); found != nil {
			field, value := unquoted(found[1]), unquoted(found[2])
			length, one = len(found[0]), func(row Row) bool {
				return row[field] == value || found[3] != "" && strings.HasPrefix(row[field], value)
			}
		} else if found := oneOf.FindStringSubmatch(text); found != nil {
			var values []string
			for value := range strings.SplitSeq(found[2], ", ") {
				values = append(values, unquoted(value))
			}
			field := unquoted(found[1])
			length, one = len(found[0]), func(row Row) bool { return slices.Contains(values, row[field]) }
		} else if found := atLeast.FindStringSubmatch(text); found != nil {
			least, _ := strconv.ParseInt(found[2], 10, 64) // digits
			field := unquoted(found[1])
			length, one = len(found[0]), func(row Row) bool {
				number, err := strconv.ParseInt(row[field], 10, 64)
				return err == nil && number >= least
			}
		} else if found := within.FindStringSubmatch(text); found != nil {
			length = len(found[0])
			one, err = between(found[1], found[2])
		} else if len(all) > 0 {
			break
		} else {
			err = fmt.Errorf("%s", text)
		}
		if err != nil {
			return nil, err
		}
		all = append(all, one)
		text = strings.TrimSpace(text[length:])
	}
	return func(row Row) bool {
		return !slices.ContainsFunc(all, func(one func(Row) bool) bool { return !one(row) })
	}, nil
}

func between(first, last string) (func(Row) bool, error) {
	start, err := time.Parse(time.RFC3339Nano, first)
	if err != nil {
		return nil, err
	}
	end, err := time.Parse(time.RFC3339Nano, last)
	if err != nil {
		return nil, err
	}
	if newest := time.Unix(0, math.MaxInt64); start.After(newest) || end.After(newest) { // as VictoriaLogs does
		return func(Row) bool { return false }, nil
	}
	return func(row Row) bool { at := timeOf(row); return !at.Before(start) && !at.After(end) }, nil
}

func timeOf(row Row) time.Time {
	at, _ := time.Parse(time.RFC3339Nano, row["_time"]) // a row without one is of no time
	return at
}

func unquoted(text string) string {
	plain, err := strconv.Unquote(text)
	if err != nil {
		return text
	}
	return plain
}

func piped(rows []Row, pipe string) ([]Row, error) {
	if list, ok := strings.CutPrefix(pipe, "fields "); ok {
		var fields []string
		for name := range strings.SplitSeq(list, ", ") {
			fields = append(fields, unquoted(name))
		}
		return chosen(rows, fields), nil
	}
	if pipe == messageLength {
		return lengths(rows), nil
	}
	if pipe == "limit 1" {
		return rows[:min(1, len(rows))], nil
	}
	if pipe == byStream {
		return streams(rows), nil
	}
	if found := sorted.FindStringSubmatch(pipe); found != nil {
		offset, _ := strconv.Atoi(found[2]) // digits
		rows = slices.Clone(rows)
		slices.SortStableFunc(rows, func(a, b Row) int {
			if found[1] != "" {
				a, b = b, a
			}
			return timeOf(a).Compare(timeOf(b))
		})
		return rows[min(offset, len(rows)):min(offset+1, len(rows))], nil
	}
	return nil, fmt.Errorf("%s", pipe)
}

// lengths has the length of each message in its place.
func lengths(rows []Row) (all []Row) {
	for _, row := range rows {
		row = maps.Clone(row)
		row["_msg"] = strconv.Itoa(len(row["_msg"]))
		all = append(all, row)
	}
	return all
}

// chosen has the fields of each row that are asked for and have a value.
func chosen(rows []Row, fields []string) (all []Row) {
	for _, row := range rows {
		asked := Row{}
		for _, name := range fields {
			if row[name] != "" {
				asked[name] = row[name]
			}
		}
		all = append(all, asked)
	}
	return all
}

func streams(rows []Row) (all []Row) {
	for _, row := range rows {
		i := slices.IndexFunc(all, func(r Row) bool { return r["@logStream"] == row["@logStream"] })
		if i < 0 {
			all = append(all, Row{"@logStream": row["@logStream"], "oldest": row["_time"], "newest": row["_time"]})
			continue
		}
		all[i]["oldest"] = earlier(all[i]["oldest"], row["_time"])
		all[i]["newest"] = later(all[i]["newest"], row["_time"])
	}
	return all
}

func earlier(a, b string) string {
	if timeOf(Row{"_time": a}).After(timeOf(Row{"_time": b})) {
		return b
	}
	return a
}

func later(a, b string) string {
	if earlier(a, b) == a {
		return b
	}
	return a
}
