// SPDX-License-Identifier: Apache-2.0

package muster_test

import (
	"cmp"
	"go/ast"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// maxNameless is the number of nameless sentences in the comments of this repository. It may only fall.
const maxNameless = 114

// shownPackages is how many packages a failure lists, those with the most nameless sentences first.
const shownPackages = 10

// nameless matches a clause whose subject is a pronoun without a noun: a reader has to find in another sentence what it
// stands for. "One machine" and "those machines" have a noun. The last pattern is a relative clause of the same kind.
var nameless = []*regexp.Regexp{
	regexp.MustCompile(`^(?i:and |but |or |so |nor )?(?i:of )?(?:[Nn]one|[Ww]hat)\b`),
	regexp.MustCompile(`^(?i:and |but |or |so |nor )?(?i:of )?(?:[Oo]ne|[Tt]hose) (?:` + afterPronoun + `)\b`),
	regexp.MustCompile(`^(?i:there|here) (?:is|are|was|were|may be|can be) (?:(?:none|those)\b|one(?: (?:` + afterPronoun + `)\b|[,.]|$))`),
	regexp.MustCompile(`, (?:one |none |some |each |both |all |most )?of (?:which|whom)\b`),
}

// afterPronoun are words that follow "one" and "those" where these are pronouns: a noun would follow an article or a
// number.
const afterPronoun = `that|which|who|whom|whose|of|in|on|at|by|with|without|from|for|to|as|beside|behind|before|after|elsewhere|alone|only|too|` +
	`is|are|was|were|be|has|have|had|does|do|did|may|might|can|could|must|will|would|should|needs?|gets?|goes|go|comes|come|takes?|stays?|makes?|ends?|waits?`

// Comments are read by engineers who do not know the code, at night, in their second language: a sentence names its
// subject.
func TestSentencesHaveASubject(t *testing.T) {
	found := map[string]int{} // by package
	total, read := 0, 0
	for _, s := range sources(t) {
		if ast.IsGenerated(s.file) {
			continue
		}
		for _, group := range s.file.Comments {
			for _, sentence := range sentences(group.Text()) {
				read++
				if isNameless(sentence) {
					total++
					found[path.Dir(s.path)]++
					if testing.Verbose() {
						t.Logf("%s: %s", s.path, sentence)
					}
				}
			}
		}
	}
	if read < 1000 {
		t.Fatalf("read %d sentences only: the test looks in the wrong place", read)
	}
	switch {
	case total > maxNameless:
		t.Errorf("%d sentences of comments have one, those, none, what or \"of which\" for a subject, more than %d: name their subjects; `go test -v -run TestSentencesHaveASubject .` lists all of them", total, maxNameless)
	case total < maxNameless:
		t.Errorf("%d sentences of comments are nameless, fewer than %d: lower maxNameless to %d", total, maxNameless, total)
	}
	if t.Failed() {
		worst := slices.SortedFunc(maps.Keys(found), func(a, b string) int { return cmp.Or(found[b]-found[a], strings.Compare(a, b)) })
		for _, dir := range worst[:min(shownPackages, len(worst))] {
			t.Logf("%4d %s", found[dir], dir)
		}
	}
}

// sentences splits the text of a comment. Indented lines are code, and an empty line ends a sentence.
func sentences(text string) []string {
	var all []string
	var paragraph []string
	end := func() {
		all = append(all, splitSentences(strings.Join(paragraph, " "))...)
		paragraph = nil
	}
	for line := range strings.Lines(text) {
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || strings.HasPrefix(line, "\t"):
			end()
		case strings.HasPrefix(trimmed, "- ") || strings.HasPrefix(trimmed, "* "):
			end()
			paragraph = []string{trimmed[2:]}
		default:
			paragraph = append(paragraph, trimmed)
		}
	}
	end()
	return all
}

// splitSentences splits after a full stop, question mark or exclamation mark, if what follows begins like a sentence.
func splitSentences(paragraph string) []string {
	var all []string
	from := 0
	for _, at := range sentenceEnd.FindAllStringSubmatchIndex(paragraph, -1) {
		all = append(all, strings.TrimSpace(paragraph[from:at[3]]))
		from = at[3]
	}
	if rest := strings.TrimSpace(paragraph[from:]); rest != "" {
		all = append(all, rest)
	}
	return all
}

// sentenceEnd has in its group the end of a sentence. "e.g. X" and "cf. X" end nothing.
var sentenceEnd = regexp.MustCompile(`(?:[^\s.][^\s.]|[0-9])(?:[)"”]?[.!?][)"”]?)(\s+)[A-Z"“(]`)

// tableOfFailures is the heading of a list that many package comments have, and no sentence.
const tableOfFailures = "What happens if"

// isNameless reports whether a sentence, or a part of it behind a semicolon, has a pronoun without a noun for a
// subject.
func isNameless(sentence string) bool {
	for clause := range strings.SplitSeq(strings.TrimPrefix(sentence, tableOfFailures), "; ") {
		if slices.ContainsFunc(nameless, func(p *regexp.Regexp) bool { return p.MatchString(strings.TrimSpace(clause)) }) {
			return true
		}
	}
	return false
}

func TestIsNameless(t *testing.T) {
	for sentence, want := range map[string]bool{
		"There is none if nothing is there that could be one.":                      true,
		"One that is gone has no tags.":                                             true,
		"Those of other clusters stay.":                                             true,
		"Of one that runs already, those that wait are its own.":                    true,
		"NONE: the add-on fails.":                                                   false,
		"None is left.":                                                             true,
		"What a caller sends is checked.":                                           true,
		"The key is new; what it signs is not.":                                     true,
		"The host has 128 devices, of which a machine may open 4.":                  true,
		"It returns two keys, one of which signs.":                                  true,
		"Returns false if the file is missing or is not a regular file.":            false,
		"One machine is stopped, and those machines that wait begin.":               false,
		"Those machines stay.":                                                      false,
		"There is one process for each VPC.":                                        false,
		"The list of what a machine opens, and of those that it must not open.":     false,
		"What happens if":                                                           false,
		"The service has a directory for each VPC, all of which the balancer sees.": true,
	} {
		if got := isNameless(sentence); got != want {
			t.Errorf("%q: %v, want %v", sentence, got, want)
		}
	}
}

func TestSentences(t *testing.T) {
	text := "Package a does it, see\ne.g. RFC 1. And more (of it). Next\nline\n\nlast\n\tcode Is Left. Out\n- item. One\n- two\n"
	want := []string{"Package a does it, see e.g. RFC 1.", "And more (of it).", "Next line", "last", "item.", "One", "two"}
	if got := sentences(text); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
