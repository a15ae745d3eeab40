// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/internal/platform/strictyaml"
)

// Limits of a file of the catalogue, in bytes of UTF-8 or entries.
const (
	MaxTitle    = 90
	MaxSentence = 400
	MaxFragment = 200
	MaxEntries  = 16
	maxPatience = 600 // seconds
	minFragment = 4   // a shorter fragment matches what it is not about
)

// Placeholders are the words of a fix that are filled in with the names of the object that is explained.
func Placeholders() []string { return []string{"$MACHINE", "$NODE", "$GROUP", "$CLUSTER", "$NAME"} }

var (
	idPattern          = regexp.MustCompile(`^M-(IAM|NET|TLS|NAME|NODE|READY|CAP|GROUP|UPDATE|POD|STACK)-[0-9]{2,3}$`)
	placeholderPattern = regexp.MustCompile(`\$[A-Z][A-Z_]*`)
)

// Read reads one file of the catalogue. The error has a line for every problem.
func Read(data []byte) (Cause, error) {
	var c Cause
	err := strictyaml.One(data, "cause", "an id, a title and a state", &c, func() field.ErrorList { return check(c) })
	if err != nil {
		return Cause{}, err
	}
	return c, nil
}

// check returns every problem of a cause that was read.
func check(c Cause) field.ErrorList {
	var errs field.ErrorList
	wrong := func(path, value, text string) { errs = append(errs, field.Invalid(field.NewPath(path), value, text)) }
	if !idPattern.MatchString(string(c.ID)) {
		wrong("id", string(c.ID), "must be as M-IAM-04: a known group, and a number")
	}
	if c.Step != "" && c.Step.Order() == 0 {
		wrong("step", string(c.Step), "must be one of the fifteen steps")
	}
	for _, line := range []struct {
		path, text string
		limit      int
	}{{"title", c.Title, MaxTitle}, {"sentence", c.Sentence, MaxSentence}, {"fix", c.Fix, MaxSentence}, {"fixOnNode", c.FixOnNode, MaxSentence}, {"why", c.Why, MaxSentence}, {"notInjected", c.NotInjected, MaxSentence}} {
		if len(line.text) > line.limit || strings.ContainsAny(line.text, "\n\t") {
			wrong(line.path, line.text, fmt.Sprintf("must be one line of at most %d bytes", line.limit))
		}
	}
	for _, word := range placeholderPattern.FindAllString(c.Fix+" "+c.FixOnNode, -1) {
		if !slices.Contains(Placeholders(), word) {
			wrong("fix", word, "must be one of "+strings.Join(Placeholders(), ", "))
		}
	}
	if c.Title == "" {
		errs = append(errs, field.Required(field.NewPath("title"), "say what it is in a few words"))
	}
	if c.PatienceSeconds < 0 || c.PatienceSeconds > maxPatience {
		wrong("patienceSeconds", fmt.Sprint(c.PatienceSeconds), fmt.Sprintf("must be from 0 to %d", maxPatience))
	}
	if n := max(len(c.Signals), len(c.Upstream), len(c.Excludes), len(c.Implies)); n > MaxEntries {
		wrong("signals", fmt.Sprint(n), fmt.Sprintf("a list has at most %d entries", MaxEntries))
	}
	return append(append(errs, checkState(c)...), checkEvidence(c)...)
}

// checkState checks what each state needs.
func checkState(c Cause) field.ErrorList {
	var errs field.ErrorList
	need := func(path, value, text string) {
		if value == "" {
			errs = append(errs, field.Required(field.NewPath(path), text))
		}
	}
	switch c.State {
	case Named:
		need("sentence", c.Sentence, "say what is wrong")
		need("fix", c.Fix, "say what to do")
		if c.Writer == "" && len(c.Signals) == 0 {
			errs = append(errs, field.Required(field.NewPath("signals"), "a cause that is named is known by a signal or by who writes its identifier"))
		}
	case Impossible, Later:
		need("why", c.Why, "say why it is not named")
		if len(c.Signals) > 0 || c.Writer != "" || c.Injected != "" || c.NotInjected != "" {
			errs = append(errs, field.Forbidden(field.NewPath("signals"), "a cause that is not named has no signals, no writer and no story"))
		}
	default:
		errs = append(errs, field.NotSupported(field.NewPath("state"), c.State, []State{Named, Impossible, Later}))
	}
	return errs
}

// checkEvidence checks the signals and the messages.
func checkEvidence(c Cause) field.ErrorList {
	var errs field.ErrorList
	fragment := func(path *field.Path, text string) {
		if len(text) < minFragment || len(text) > MaxFragment {
			errs = append(errs, field.Invalid(path, text, fmt.Sprintf("must have from %d to %d bytes", minFragment, MaxFragment)))
		}
	}
	for i, s := range c.Signals {
		path := field.NewPath("signals").Index(i)
		if !slices.Contains(sources(), s.Source) {
			errs = append(errs, field.NotSupported(path.Child("source"), s.Source, sources()))
		}
		if s.Code == "" && len(s.Text) == 0 {
			errs = append(errs, field.Required(path.Child("code"), "a signal has a code or a text"))
		}
		for j, text := range s.Text {
			fragment(path.Child("text").Index(j), text)
		}
		for j, text := range s.Without {
			fragment(path.Child("without").Index(j), text)
		}
	}
	for i, u := range c.Upstream {
		path := field.NewPath("upstream").Index(i)
		fragment(path.Child("text"), u.Text)
		if u.Module == "" || u.File == "" || strings.Contains(u.File, "..") {
			errs = append(errs, field.Invalid(path.Child("file"), u.File, "name the module and the file in it"))
		}
	}
	return errs
}
