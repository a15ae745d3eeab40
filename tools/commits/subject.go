// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// longest is the number of characters that a subject may have.
const longest = 65

// subjectForm is an area, or several, and what is done there. Its last group is the first word after the areas.
var subjectForm = regexp.MustCompile(`^[\w./-]+(?:, [\w./-]+)*: (\S+) .*\S$`)

//go:embed verbs.txt
var verbsText string

// verbs are the verbs that a subject may begin with, in the imperative. The list tells "refuse" from "refuses" and from
// a noun.
var verbs = strings.Fields(verbsText)

// subjectProblem is the reason why the subject of a commit does not hold, or "". Subjects of merges always hold: git
// writes them.
func subjectProblem(c commit) string {
	if len(c.parents) > 1 {
		return ""
	}
	form := subjectForm.FindStringSubmatch(c.subject)
	if form == nil {
		return "must have the form `area: verb what`, such as `eks: refuse unknown versions`"
	}
	if length := utf8.RuneCountInString(c.subject); length > longest {
		return fmt.Sprintf("has %d characters, more than %d: the reason belongs into the body", length, longest)
	}
	if word := form[1]; !slices.Contains(verbs, word) {
		return fmt.Sprintf("begins with %q after the area, which is not a verb of tools/commits/verbs.txt: %s", word, verbHint(word))
	}
	return ""
}

// verbHint says what to write instead of a word that is not on the list.
func verbHint(word string) string {
	for _, ending := range []string{"s", "es", "d", "ed", "ing"} {
		stem, ok := strings.CutSuffix(strings.ToLower(word), ending)
		for _, verb := range []string{stem, stem + "e"} {
			if ok && slices.Contains(verbs, verb) {
				return fmt.Sprintf("write %q", verb)
			}
		}
	}
	return "write a verb in the imperative, such as `refuse`, or add the verb to the list"
}
