// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
)

const (
	cluster = "000000000000:/aws/eks/muster/cluster"
	suffix  = "-0d9c6b1f4f0f4e0d9b1a7e6c5d4f3a2b" // of the streams of the events
)

var now = time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)

// recorded reads lines that clusters of Muster wrote in stories: audit events, among them all of a kubelet's certificate signing
// request, and the beginnings of the logs of three components. The two lines with FLAG: have the form that upstream prints
// from verbosity 1 on, with values of the components.
func recorded(t testing.TB) []*evaluation.Event {
	t.Helper()
	file, err := os.Open("testdata/events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var events []*evaluation.Event
	for lines := bufio.NewReader(file); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break
		}
		var read struct {
			Timestamp       int64
			Stream, Message string
		}
		if err := json.Unmarshal([]byte(line), &read); err != nil {
			t.Fatal(err)
		}
		events = append(events, &evaluation.Event{
			Timestamp: read.Timestamp, Ingested: read.Timestamp + 1000, Stream: read.Stream, Log: cluster,
			Message: read.Message, Pointer: fmt.Sprintf("p%04d", len(events)), Fields: flat(read.Message),
		})
	}
	if len(events) != 134 {
		t.Fatalf("%d events", len(events))
	}
	return events
}

// flat returns the scalars of a JSON object by their paths.
func flat(message string) map[string]string {
	fields := map[string]string{}
	decoder := json.NewDecoder(strings.NewReader(message))
	decoder.UseNumber()
	var object map[string]any
	if decoder.Decode(&object) != nil {
		return nil
	}
	flatten(fields, "", object)
	return fields
}

func flatten(to map[string]string, path string, value any) {
	switch v := value.(type) {
	case map[string]any:
		for name, member := range v {
			flatten(to, path+"."+name, member)
		}
	case []any:
		for i, element := range v {
			flatten(to, path+"."+strconv.Itoa(i), element)
		}
	case nil:
	default:
		to[path[1:]] = fmt.Sprint(v)
	}
}

func sequence(events []*evaluation.Event) iter.Seq2[*evaluation.Event, error] {
	return func(yield func(*evaluation.Event, error) bool) {
		for _, event := range events {
			if !yield(event, nil) {
				return
			}
		}
	}
}

// ask runs a query, and returns its rows without @ptr as lines of name=value.
func ask(t testing.TB, query string, events []*evaluation.Event) []string {
	t.Helper()
	return lines(run(t, query, events).Rows)
}

func run(t testing.TB, query string, events []*evaluation.Event) *evaluation.Result {
	t.Helper()
	parsed, err := logsinsights.Parse(query)
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	result, err := evaluation.Run(parsed, sequence(events), evaluation.Options{Now: now})
	if err != nil {
		t.Fatalf("%s\n%v", query, err)
	}
	return result
}

func lines(rows [][]evaluation.Field) []string {
	all := make([]string, len(rows))
	for i, row := range rows {
		words := make([]string, 0, len(row))
		for _, field := range row {
			if field.Name != "@ptr" {
				words = append(words, field.Name+"="+field.Value)
			}
		}
		all[i] = strings.Join(words, " ")
	}
	return all
}
