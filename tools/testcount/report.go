// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
)

// event is what `go test -json` prints; see `go doc test2json`.
type event struct {
	Action      string
	Package     string
	Test        string
	Output      string
	Elapsed     float64
	FailedBuild string
}

// test names a test, or with no Test its whole package.
type test struct{ Package, Test string }

// counts are those of one package while it runs.
type counts struct{ passed, failed, skipped int }

// report is a writer of `go test -json` output that prints what is worth a look. Lines that are no events, such as what
// `go vet` says, are printed as they are. Subtests count as tests.
type report struct {
	out, log io.Writer
	partial  []byte
	output   map[test]*strings.Builder // of tests that have not ended yet
	running  map[string]*counts

	passed, failed, skipped int

	reasons []string // complaints of failed tests
	notRun  []string // skipped tests, and why
}

func newReport(out, log io.Writer) *report {
	return &report{out: out, log: log, output: map[test]*strings.Builder{}, running: map[string]*counts{}}
}

// Write takes output as it comes, whole lines or not.
func (r *report) Write(data []byte) (int, error) {
	r.partial = append(r.partial, data...)
	for {
		end := bytes.IndexByte(r.partial, '\n')
		if end < 0 {
			return len(data), nil
		}
		line := r.partial[:end]
		r.partial = r.partial[end+1:]
		if err := r.take(line); err != nil {
			return 0, err
		}
	}
}

// flush takes a last line that had no end.
func (r *report) flush() error {
	line := r.partial
	r.partial = nil
	if len(line) == 0 {
		return nil
	}
	return r.take(line)
}

func (r *report) take(line []byte) error {
	e, ok := parse(line)
	if !ok {
		r.line(string(line))
		return nil
	}
	if _, err := io.WriteString(r.log, e.Output); err != nil {
		return fmt.Errorf("writing the log: %w", err)
	}
	r.add(e)
	return nil
}

func parse(line []byte) (event, bool) {
	var e event
	err := json.Unmarshal(line, &e)
	return e, err == nil && e.Action != ""
}

// line prints a line and keeps it in the log.
func (r *report) line(text string) {
	fmt.Fprintln(r.out, text)
	fmt.Fprintln(r.log, text)
}

func (r *report) add(e event) {
	key := test{e.Package, e.Test}
	switch e.Action {
	case "output":
		if r.output[key] == nil {
			r.output[key] = &strings.Builder{}
		}
		r.output[key].WriteString(e.Output)
	case "build-output":
		fmt.Fprint(r.out, e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			r.endPackage(e)
		} else {
			r.endTest(e)
		}
		delete(r.output, key)
	}
}

func (r *report) endTest(e event) {
	c := r.running[e.Package]
	if c == nil {
		c = &counts{}
		r.running[e.Package] = c
	}
	switch e.Action {
	case "pass":
		c.passed++
	case "skip":
		c.skipped++
		r.skip(test{e.Package, e.Test})
	case "fail":
		c.failed++
		r.printOutput(test{e.Package, e.Test})
		r.explain(test{e.Package, e.Test})
	}
}

// complaint is a line that a test prints by its Error, Fatal or Log.
var complaint = regexp.MustCompile(`^\s+\w+_test\.go:\d+: `)

// explain keeps what a test that failed complained of last, for the end: in the middle of everything that was printed
// it is hard to find. A test's log lines look like complaints, and come before the complaint that it failed for.
func (r *report) explain(key test) {
	const most, width = 5, 400
	output := r.output[key]
	if output == nil {
		return
	}
	var said []string
	for line := range strings.Lines(output.String()) {
		text := strings.TrimSpace(line)
		switch {
		case complaint.MatchString(line):
			said = append(said, text)
		case len(said) > 0 && text != "" && strings.HasPrefix(line, "        "): // a message of more lines
			said[len(said)-1] += " " + text
		}
	}
	if len(said) == 0 {
		return
	}
	said = said[max(len(said)-most, 0):]
	for i, text := range said {
		said[i] = fmt.Sprintf("      %.*s", width, text)
	}
	r.reasons = append(r.reasons, fmt.Sprintf("  %s %s\n%s", key.Package, key.Test, strings.Join(said, "\n")))
}

// skip keeps why a test was skipped, for the end: nobody should take what did not run for what passed.
func (r *report) skip(key test) {
	why := "it does not say why"
	if output := r.output[key]; output != nil {
		for line := range strings.Lines(output.String()) {
			if at := complaint.FindString(line); at != "" {
				why = strings.TrimSpace(strings.TrimPrefix(line, at))
			}
		}
	}
	r.notRun = append(r.notRun, fmt.Sprintf("%s %s: %s", key.Package, key.Test, why))
}

func (r *report) endPackage(e event) {
	c := r.running[e.Package]
	if c == nil {
		c = &counts{}
	}
	delete(r.running, e.Package)
	if e.Action == "fail" {
		if c.failed == 0 { // it did not build, or ended in the middle of a test: nothing else tells why
			c.failed++
			for key := range r.output {
				if key.Package == e.Package {
					r.printOutput(key)
				}
			}
		}
		fmt.Fprintf(r.out, "FAIL  %s  %.1f s, %d of %d failed\n", e.Package, e.Elapsed, c.failed, c.passed+c.failed+c.skipped)
	} else if c.passed+c.skipped > 0 {
		fmt.Fprintf(r.out, "ok    %s  %.1f s, %d tests\n", e.Package, e.Elapsed, c.passed+c.skipped)
	}
	r.passed, r.failed, r.skipped = r.passed+c.passed, r.failed+c.failed, r.skipped+c.skipped
	for key := range r.output {
		if key.Package == e.Package {
			delete(r.output, key)
		}
	}
}

func (r *report) printOutput(key test) {
	if output := r.output[key]; output != nil {
		fmt.Fprint(r.out, output.String())
	}
}
