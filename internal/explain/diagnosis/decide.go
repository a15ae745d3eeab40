// SPDX-License-Identifier: Apache-2.0

package diagnosis

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/explain/cause"
)

// maxEvidence is how many pieces of evidence a finding shows. The newest stay.
const maxEvidence = 5

// Decide returns the report about an object at a moment.
func Decide(catalogue cause.Catalogue, facts Facts, now time.Time) Report {
	findings, other := wrong(catalogue, facts, facts.Names, now)
	report := Report{
		Kind: facts.Kind, Name: facts.Name, At: now.UTC(), Causes: findings, Other: newest(other), Standing: facts.Standing, Unseen: facts.Unseen,
	}
	switch {
	case len(findings) > 0:
		report.Verdict = Found
	case len(other) > 0:
		report.Verdict = NotKnown
	case facts.Healthy || facts.Idle:
		report.Verdict = Healthy
	case facts.late(now):
		report.Verdict, report.Other = NotKnown, newest(facts.ofObjects())
	default:
		report.Verdict = OnItsWay
	}
	report.Steps = steps(facts, findings)
	return report
}

// wrong returns what is wrong with an object and its parts: the causes, with the names filled into their fixes, and the
// evidence of trouble that shows none. A cause that several parts have is told once.
func wrong(catalogue cause.Catalogue, facts Facts, names map[string]string, now time.Time) (findings []Finding, other []Evidence) {
	found, other := match(catalogue, facts, now)
	findings = explain(without(found), names, facts.OnNode)
	for _, part := range facts.Parts {
		of, more := wrong(catalogue, part, names, now)
		other = append(other, more...)
		for _, f := range of {
			at := slices.IndexFunc(findings, func(have Finding) bool { return have.Cause == f.Cause })
			if at < 0 {
				findings = append(findings, f)
				continue
			}
			have := &findings[at]
			have.Evidence = newest(append(have.Evidence, f.Evidence...))
			have.Consequences = slices.Compact(slices.Sorted(slices.Values(append(have.Consequences, f.Consequences...))))
		}
	}
	slices.SortFunc(findings, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(a.Step.Order(), b.Step.Order()), cmp.Compare(a.Cause.Number(), b.Cause.Number()))
	})
	return findings, other
}

// ofObjects is the evidence of an object and its parts, without the lines of logs.
func (f Facts) ofObjects() []Evidence {
	all := slices.DeleteFunc(slices.Clone(f.Evidence), func(e Evidence) bool { return e.Source.Passing() })
	for _, part := range f.Parts {
		all = append(all, part.ofObjects()...)
	}
	return all
}

// late reports whether the object has been on its way for longer than it may be.
func (f Facts) late(now time.Time) bool { return f.Since.IsZero() || now.Sub(f.Since) >= f.Patience }

// still is since when the object has not come forward: its last step, or when it began.
func (f Facts) still() time.Time {
	last := f.Since
	for _, at := range f.Steps {
		if at.After(last) {
			last = at
		}
	}
	return last
}

// candidate is a cause with its evidence.
type candidate struct {
	cause    cause.Cause
	written  bool // a part wrote the identifier
	evidence []Evidence
}

// match finds the causes that the evidence shows, by their identifiers, and the trouble that shows none.
func match(catalogue cause.Catalogue, facts Facts, now time.Time) (found map[cause.ID]*candidate, other []Evidence) {
	found = map[cause.ID]*candidate{}
	for _, e := range facts.Evidence {
		matched := false
		for _, c := range shows(catalogue, e) {
			matched = true
			if !counts(c, e, facts, now) {
				continue
			}
			if found[c.ID] == nil {
				found[c.ID] = &candidate{cause: c}
			}
			found[c.ID].written = found[c.ID].written || e.Cause == c.ID
			found[c.ID].evidence = append(found[c.ID].evidence, e)
		}
		if !matched && e.Trouble && (!e.Source.Passing() || !facts.Healthy && facts.late(now) && current(e, now)) {
			other = append(other, e)
		}
	}
	return found, other
}

// shows returns the causes that evidence is of. The identifier that a part wrote counts before what its text says.
func shows(catalogue cause.Catalogue, e Evidence) []cause.Cause {
	if e.Cause != "" {
		if c, ok := catalogue.Find(e.Cause); ok && c.State == cause.Named {
			return []cause.Cause{c}
		}
		return nil
	}
	return catalogue.Matching(e.Source, e.Code, e.Text)
}

// current reports whether a line was written so lately that it says how things are now.
func current(e Evidence, now time.Time) bool { return !e.Time.IsZero() && now.Sub(e.Time) <= Recent }

// counts reports whether evidence of a cause is about the object as it is now.
func counts(c cause.Cause, e Evidence, facts Facts, now time.Time) bool {
	if now.Sub(facts.still()) < c.Patience() {
		return false
	}
	if !e.Source.Passing() {
		return now.Sub(e.Time) >= c.Patience() // a zero time is long ago
	}
	if facts.Healthy || !current(e, now) {
		return false
	}
	return c.Step == "" || c.Step == cause.Kept || !facts.done(c.Step)
}

// done reports whether a step, or one after it, was done. A machine that was Ready once has done all but the last, and
// what keeps it from being Ready again may be about any of them.
func (f Facts) done(step cause.Step) bool {
	if _, was := f.Steps[cause.Ready]; was {
		return false
	}
	for at := range f.Steps {
		if at.Order() >= step.Order() {
			return true
		}
	}
	return false
}

// without leaves out the causes that another one excludes. A cause whose identifier a part wrote is left out only for
// another such cause.
func without(found map[cause.ID]*candidate) map[cause.ID]*candidate {
	left := map[cause.ID]*candidate{}
	for id, c := range found {
		excluded := false
		for _, other := range found {
			if slices.Contains(other.cause.Excludes, id) && (other.written || !c.written) {
				excluded = true
			}
		}
		if !excluded {
			left[id] = c
		}
	}
	return left
}

// explain returns the causes that none of the others implies, with the fixes for a node or for a machine of Muster's.
func explain(found map[cause.ID]*candidate, names map[string]string, onNode bool) []Finding {
	implied := map[cause.ID]bool{}
	for _, c := range found {
		for _, id := range c.cause.Implies {
			implied[id] = found[id] != nil
		}
	}
	var out []Finding
	for id, c := range found {
		if implied[id] {
			continue
		}
		f := Finding{
			Cause: id, Title: c.cause.Title, Step: c.cause.Step, Sentence: c.cause.Sentence, Fix: fill(c.cause.FixFor(onNode), names),
			Evidence: newest(c.evidence),
		}
		for _, consequence := range c.cause.Implies {
			if found[consequence] != nil {
				f.Consequences = append(f.Consequences, consequence)
			}
		}
		out = append(out, f)
	}
	return out
}

// fill puts the names of the object in the place of the words for them. A name that is not known stays a word, which a
// shell shows to be missing.
func fill(fix string, names map[string]string) string {
	for _, word := range cause.Placeholders() {
		if name := names[word]; name != "" {
			fix = strings.ReplaceAll(fix, word, name)
		}
	}
	return fix
}

// newest are the newest pieces of evidence, the newest last, each once.
func newest(evidence []Evidence) []Evidence {
	sorted := slices.Clone(evidence)
	slices.SortStableFunc(sorted, func(a, b Evidence) int { return a.Time.Compare(b.Time) })
	var out []Evidence
	for i, e := range slices.Backward(sorted) {
		again := slices.ContainsFunc(sorted[i+1:], func(later Evidence) bool {
			return later.Source == e.Source && later.Object == e.Object && later.Code == e.Code && later.Text == e.Text
		})
		if !again && len(out) < maxEvidence {
			out = append(out, e)
		}
	}
	slices.Reverse(out)
	return out
}

// steps says how far each step is.
func steps(facts Facts, findings []Finding) []Step {
	if facts.Steps == nil {
		return nil
	}
	last := 0
	for step := range facts.Steps {
		last = max(last, step.Order())
	}
	_, wasReady := facts.Steps[cause.Ready]
	at, state := standsAt(facts, findings, last)
	var out []Step
	for _, step := range cause.Steps() {
		s := Step{Step: step, Time: facts.Steps[step], State: StepNotReached}
		switch {
		case step.OfClient() && facts.ByRole:
			s.State = StepNotNeeded
		case optional(step) && s.Time.IsZero() && step.Order() <= last:
			s.State = StepNotSeen
		case step.Order() <= last && (step != cause.Ready || facts.Healthy || !wasReady), step == cause.Kept && facts.Healthy:
			s.State = StepDone
		case step == at:
			s.State = state
		case step.Order() < at.Order():
			s.State = StepNotSeen
		}
		out = append(out, s)
	}
	return out
}

// standsAt is the step that an object stands at after the last that is done: the step of a cause, or the next that is
// recorded.
func standsAt(facts Facts, findings []Finding, last int) (cause.Step, StepState) {
	if _, wasReady := facts.Steps[cause.Ready]; wasReady && !facts.Healthy && len(findings) > 0 {
		return cause.Ready, StepFailed
	} else if wasReady && !facts.Healthy {
		return cause.Ready, StepWaiting
	}
	for _, f := range findings { // in the order of their steps
		if f.Step.Order() > last {
			return f.Step, StepFailed
		}
	}
	for _, step := range cause.Steps() {
		if step.Order() > last && step.Recorded() && (!step.OfClient() || !facts.ByRole) {
			return step, StepWaiting
		}
	}
	return cause.Kept, StepWaiting
}

// optional reports whether a machine may be Ready without the step: nobody waits for a serving certificate.
func optional(step cause.Step) bool {
	return step.Order() > cause.NodeRegistered.Order() && step.Order() < cause.Ready.Order()
}
