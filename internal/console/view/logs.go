// SPDX-License-Identifier: Apache-2.0

package view

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/explain/redaction"
)

const (
	// mostRows is how many rows of an answer the page shows, and mostText how many bytes they have together. Each cell takes cellText of
	// them, even without a value: a query may name thousands of columns.
	mostRows, mostText, cellText = 500, 1 << 20, 25
	// mostCell is how many bytes of a value the page shows.
	mostCell = 4096
)

// LogForm is a query about kept logs as an address has it.
type LogForm struct {
	// Cluster is the spec.name of the cluster of the log group; empty for the only one.
	Cluster string
	Query   string
	// Since is how long ago the range of time begins, such as 1h. Start and End are moments, which count instead of it if Start is there.
	Since, Start, End string
}

// Logs is the page of queries about kept logs.
type Logs struct {
	At time.Time
	// Clusters have the log groups that there are, by their spec.names.
	Clusters []string
	Form     LogForm
	// Answer is nil without one: nothing was asked, or Problem says why.
	Answer  *LogAnswer
	Problem *LogProblem
	// Rows are those of the answer that the page shows, and Chart is nil where the answer has no chart.
	Rows  [][]string
	Chart *Chart
}

// LogAnswer is the answer of a query about kept logs.
type LogAnswer struct {
	Cluster  string    `json:"cluster"`
	LogGroup string    `json:"logGroup"`
	LogTypes []string  `json:"logTypes"` // that are on now
	Start    time.Time `json:"start"`
	End      time.Time `json:"end"`
	Columns  []string  `json:"columns"`
	// Rows are as muster logs query -o json prints them: without the fields that a row lacks.
	Rows []map[string]string `json:"rows"`
	// More says that the answer has more rows, which were left out.
	More bool `json:"more"`
	// Matched, Scanned and Bytes are statistics as GetQueryResults has them. Events that the log store sorted out are in none of them.
	Matched int `json:"matched"`
	Scanned int `json:"scanned"`
	Bytes   int `json:"bytes"`
}

// LogProblem is why there is no answer.
type LogProblem struct {
	Message string `json:"error"`
	// Mistake is the place of a mistake in the query; nil if there is none.
	*Mistake
	// Pointed are the query's line and a caret below the mistake; empty without one.
	Pointed string `json:"-"`
	// Commands are command lines that mend it.
	Commands []string `json:"commands,omitempty"`
}

// Mistake is a part of a query: code points from Start up to End, counted from 0, with the line and the position of Start, counted from 1.
type Mistake struct {
	Line     int `json:"line"`
	Position int `json:"position"`
	Start    int `json:"start"`
	End      int `json:"end"`
}

// NewMistake is what is wrong with the text of a query, whose error points at the character.
func NewMistake(query string, err error) *LogProblem {
	problem := &LogProblem{Message: err.Error()}
	if syntax, ok := logsinsights.AsSyntaxError(err); ok {
		problem.Mistake = &Mistake{syntax.Line, syntax.Position, syntax.Start, syntax.End}
		problem.Pointed = syntax.Pointed(query)
	}
	return problem
}

// SetResult puts at most so many rows of a result into the answer.
func (a *LogAnswer) SetResult(r *evaluation.Result, most int) {
	a.Columns, a.Matched, a.Scanned, a.Bytes = r.Columns, r.Matched, r.Scanned, r.Bytes
	a.More = len(r.Rows) > most
	a.Rows = make([]map[string]string, min(most, len(r.Rows)))
	for i := range a.Rows {
		a.Rows[i] = make(map[string]string, len(r.Rows[i]))
		for _, field := range r.Rows[i] {
			a.Rows[i][field.Name] = field.Value
		}
	}
}

// Redact replaces each of the answer's rows by what clean makes of its JSON, until it fails. That takes seconds for many large rows.
// Of a row that looks like a Secret the other columns are shown, so that it keeps nothing from the rows beside it.
func (a *LogAnswer) Redact(clean func(any) ([]byte, error)) error {
	for i, row := range a.Rows {
		raw, err := clean(row)
		hidden := errors.Is(err, redaction.ErrSecret)
		if hidden {
			row = maps.Clone(row)
			delete(row, "data")
			delete(row, "stringData")
			raw, err = clean(row)
		}
		if err != nil {
			return err
		}
		a.Rows[i] = nil
		if err := json.Unmarshal(raw, &a.Rows[i]); err != nil {
			return err
		}
		if hidden {
			a.Rows[i]["data"] = "[left out: data of a Secret]"
		}
	}
	return nil
}

// NewLogs makes the page. The answer and the query that it answers may be nil.
func NewLogs(f Facts, form LogForm, query *logsinsights.Query, answer *LogAnswer) Logs {
	page := Logs{At: f.At, Form: form, Answer: answer}
	for i := range f.Clusters {
		page.Clusters = append(page.Clusters, f.Clusters[i].Spec.Name)
	}
	slices.Sort(page.Clusters)
	if page.Form.Cluster == "" && len(page.Clusters) > 0 {
		page.Form.Cluster = page.Clusters[0]
	}
	if page.Form.Cluster != "" && !slices.Contains(page.Clusters, page.Form.Cluster) {
		page.Clusters = append(page.Clusters, page.Form.Cluster)
	}
	if answer == nil {
		return page
	}
	page.Rows = cells(answer)
	page.Chart = NewChart(query, answer)
	return page
}

// cells are the values of the rows that the page shows, each in its column.
func cells(a *LogAnswer) [][]string {
	var rows [][]string
	text := 0
	for _, row := range a.Rows[:min(len(a.Rows), mostRows)] {
		shown := make([]string, len(a.Columns))
		for i, column := range a.Columns {
			value := row[column]
			if len(value) > mostCell {
				value = strings.ToValidUTF8(value[:mostCell], "") + "…"
			}
			shown[i] = value
			text += len(value) + cellText
		}
		if text > mostText && len(rows) > 0 {
			break
		}
		rows = append(rows, shown)
	}
	return rows
}

// LogExample is a query to begin with.
type LogExample struct{ Name, Since, Query string }

// LogExamples are queries to begin with.
func LogExamples() []LogExample {
	return []LogExample{
		{"Requests over time, by verb", "1h", "stats count(*) as requests by bin(5m), verb"},
		{"Requests that were refused, by user", "24h", "filter responseStatus.code = 403\n| stats count(*) as refused by user.username, objectRef.resource\n| sort refused desc"},
		{"What became of certificate signing requests", "24h", "filter objectRef.subresource = \"approval\"\n| display @timestamp, user.username, objectRef.name, responseObject.status.conditions.0.message"},
		{"How the API server authorizes requests", "24h", "filter @logStream like /^kube-apiserver-/\n| filter @message like \"--authorization-mode\"\n| display @timestamp, @message"},
	}
}
