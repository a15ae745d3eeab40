// SPDX-License-Identifier: Apache-2.0

// Package logpattern groups log lines by the structure that they share, as the pattern command of CloudWatch Logs Insights
// does: what varies from line to line becomes a token such as <Number-1>, numbered in the order of the pattern.
//
// A token is a word with a digit in it, told by its form: a timestamp, an IP address, a UUID, a number, a hexadecimal string,
// or <Token> if it is none of these. Words without a digit belong to the pattern. AWS's service learns further tokens by a model;
// this package is a function of the line alone, so that a line has the same pattern in each query.
package logpattern

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Pattern is the structure of some lines.
type Pattern struct {
	Text     string
	Count    int    // of lines
	Severity string // that the lines name: FATAL, ERROR, WARN, INFO or DEBUG; empty if none
}

// Counter counts the patterns of lines. The zero Counter is ready.
type Counter struct {
	counts map[string]*Pattern
}

// Add counts a line, and reports whether its pattern is a new one.
func (c *Counter) Add(line string) bool {
	if c.counts == nil {
		c.counts = map[string]*Pattern{}
	}
	text := Of(line)
	p := c.counts[text]
	if p != nil {
		p.Count++
		return false
	}
	c.counts[text] = &Pattern{Text: text, Count: 1, Severity: severity(text)}
	return true
}

// Patterns returns the patterns, those of most lines first.
func (c *Counter) Patterns() []Pattern {
	all := make([]Pattern, 0, len(c.counts))
	for _, p := range c.counts {
		all = append(all, *p)
	}
	slices.SortFunc(all, func(a, b Pattern) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Text, b.Text))
	})
	return all
}

// tokens matches what varies. Longer forms stand before those that they begin with.
var tokens = regexp.MustCompile(`(?P<Time>\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)?|\b\d\d:\d\d:\d\d(?:[.,]\d+)?)` +
	`|(?P<UUID>\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b)` +
	`|(?P<IPAddress>\b\d{1,3}\.\d{1,3}\.\d{1,3}\.\d{1,3}\b)` +
	`|(?P<Number>\b\d+(?:\.\d+)?\b)` +
	`|(?P<Hex>\b(?:0x)?[0-9a-fA-F]*\d[0-9a-fA-F]*\b)` +
	`|(?P<Token>[\pL_]*\d[\pL\d_]*)`)

// klog matches how lines of Kubernetes' components begin: a letter for the severity, month and day.
var klog = regexp.MustCompile(`^[IWEF]\d{4} `)

// Of returns the pattern of a line.
func Of(line string) string {
	var pattern strings.Builder
	if klog.MatchString(line) {
		pattern.WriteString(line[:1])
		line = line[1:]
	}
	last, number := 0, 0
	for _, found := range tokens.FindAllStringSubmatchIndex(line, -1) {
		number++
		pattern.WriteString(line[last:found[0]])
		pattern.WriteString("<" + tokenName(found) + "-" + strconv.Itoa(number) + ">")
		last = found[1]
	}
	pattern.WriteString(line[last:])
	return pattern.String()
}

func tokenName(found []int) string {
	for group, name := range tokens.SubexpNames() {
		if name != "" && found[2*group] >= 0 {
			return name
		}
	}
	return "Token"
}

// severities are what lines call how bad something is, the worst first. klog's letter before the date is one of them.
var severities = []struct {
	label string
	words *regexp.Regexp
}{
	{"FATAL", regexp.MustCompile(`(?i)\b(fatal|panic)\b|^F<`)},
	{"ERROR", regexp.MustCompile(`(?i)\b(error|err|exception|failed|failure)\b|^E<`)},
	{"WARN", regexp.MustCompile(`(?i)\bwarn(ing)?\b|^W<`)},
	{"INFO", regexp.MustCompile(`(?i)\binfo\b|^I<`)},
	{"DEBUG", regexp.MustCompile(`(?i)\b(debug|trace)\b`)},
}

func severity(pattern string) string {
	for _, s := range severities {
		if s.words.MatchString(pattern) {
			return s.label
		}
	}
	return ""
}
