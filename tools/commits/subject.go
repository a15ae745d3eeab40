// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"regexp"
	"unicode/utf8"
)

// longest is the number of characters that a subject may have.
const longest = 65

// subjectForm is an area, or several, and what is done there.
var subjectForm = regexp.MustCompile(`^[\w./-]+(, [\w./-]+)*: \S.*\S$`)

// subjectProblem is what is wrong with the subject of a commit, or "". Git writes the subjects of merges.
func subjectProblem(c commit) string {
	length := utf8.RuneCountInString(c.subject)
	switch {
	case len(c.parents) > 1:
		return ""
	case !subjectForm.MatchString(c.subject):
		return "must have the form `area: verb what`, such as `eks: refuse unknown versions`"
	case length > longest:
		return fmt.Sprintf("has %d characters, more than %d: the reason belongs into the body", length, longest)
	}
	return ""
}
