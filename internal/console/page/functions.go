// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
	"muster.dev/muster/internal/platform/decision"
	"muster.dev/muster/internal/platform/termsafe"
)

// functions are what templates call.
func functions() template.FuncMap {
	return template.FuncMap{
		"text": termsafe.Line, "lines": func(text string) string { return termsafe.Lines(strings.TrimSpace(text)) },
		"clock": clock, "moment": moment, "ago": ago, "left": left, "date": func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04 UTC") },
		"ms": ms, "plus": func(from, to int64) string { return ms(to - from) }, "half": func(n int64) string { return ms(n / 2) },
		"scale": scale, "width": func(from, to, full int64) int64 { return max(4, scale(to, full)-scale(from, full)) },
		"step": step, "joined": joined, "headline": headline, "verdict": verdict, "states": view.States,
		"machine": func(id string) string { return "/machines/" + url.PathEscape(id) }, "anchor": anchor,
		"tone": tone, "signer": func(name string) string { return termsafe.Line(csrview.ShortSigner(name)) }, "subject": subject, "outcome": outcome, "words": words,
		"life": func(c view.Certificate, at time.Time) life {
			return life{Spent: c.Spent(at), Tenths: c.Spent(at) / 100, Late: !at.Before(c.NotAfter)}
		},
		"state": state, "role": roleName, "usable": usable, "checkable": checkable, "concrete": concrete, "refusalAnchor": refusalAnchor,
		"rfc": rfc, "number": number, "thousands": thousands, "sinces": sinces, "examples": examples,
		"input": newInput, "newGroup": newGroup,
		"most": most, "sum": func(a, b int) int { return a + b },
		"share": func(most, n int) int { return n * 98 / most }, "rest": func(most, a, b int) int { return 99 - a*98/most - b*98/most },
	}
}

// life is what the bar of a certificate's life shows.
type life struct {
	Spent, Tenths int
	Late          bool
}

// clock is the time of a day.
func clock(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("15:04:05 UTC")
}

// moment is the time of a day, with the day if that is another one.
func moment(t, now time.Time) string {
	if t.UTC().Format(time.DateOnly) == now.UTC().Format(time.DateOnly) {
		return t.UTC().Format("15:04:05 UTC")
	}
	return t.UTC().Format("02 Jan 15:04 UTC")
}

// ago is how long ago a moment was. It changes once a minute at most, so that a page which is kept current stands still.
func ago(t, now time.Time) string {
	past := now.Sub(t)
	if past < time.Minute {
		return "less than a minute ago"
	}
	return duration.HumanDuration(past.Truncate(time.Minute)) + " ago"
}

// left is the time that is left until a moment, in units that do not change each second.
func left(end, now time.Time) string {
	switch remains := end.Sub(now); {
	case remains <= 0:
		return "over"
	case remains < time.Minute:
		return "< 1 min"
	default:
		return duration.HumanDuration(remains.Truncate(time.Minute))
	}
}

// ms is a number of milliseconds with a thin blank between thousands.
func ms(n int64) string { return thousands(int(n)) + " ms" }

// scale is the place of a value on an axis of 1000.
func scale(n, full int64) int64 { return n * 996 / max(full, 1) }

// step is a join step in words.
func step(s v1alpha1.JoinStep) string {
	names := map[v1alpha1.JoinStep]string{
		v1alpha1.StepLaunched: "Launched", v1alpha1.StepAPIReached: "API server knows it",
		v1alpha1.StepClientCSRCreated: "Client certificate asked", v1alpha1.StepClientCSRApproved: "… approved", v1alpha1.StepClientCSRIssued: "… issued",
		v1alpha1.StepNodeRegistered:    "Node registered",
		v1alpha1.StepServingCSRCreated: "Serving certificate asked", v1alpha1.StepServingCSRApproved: "… approved", v1alpha1.StepServingCSRIssued: "… issued",
		v1alpha1.StepReady: "Ready",
	}
	if name, ok := names[s]; ok {
		return name
	}
	return termsafe.Line(string(s))
}

// joined says in a line how long a join took.
func joined(w view.Waterfall) string {
	for _, row := range w.Rows {
		if row.Step != v1alpha1.StepReady || !row.Done {
			continue
		}
		if row.Median > 0 {
			return fmt.Sprintf("Ready after %s; its siblings’ median is %s", ms(row.To), ms(row.Median))
		}
		return "Ready after " + ms(row.To)
	}
	return "Milliseconds since its launch"
}

// headline is the overview in a sentence.
func headline(o view.Overview) string {
	switch n := len(o.Wrong); {
	case n == 0 && len(o.Unseen) > 0:
		return "Nothing is wrong that can be seen, and not all can be seen"
	case n == 0 && len(o.Clusters) == 0:
		return "No cluster yet"
	case n == 0:
		return "Nothing is wrong that muster can see"
	case n == 1:
		return "One thing needs a look"
	default:
		return strconv.Itoa(n) + " things need a look"
	}
}

// verdict is the verdict of a report in words.
func verdict(r diagnosis.Report) string {
	switch r.Verdict {
	case diagnosis.Healthy:
		return "Nothing is wrong with it"
	case diagnosis.OnItsWay:
		return "It is on its way, and nothing is wrong so far"
	case diagnosis.NotKnown:
		return "Something is wrong, and the cause is not known"
	case diagnosis.Found:
		if len(r.Causes) > 1 {
			return fmt.Sprintf("%d causes are known", len(r.Causes))
		}
		return "The cause is known"
	}
	return "It was not explained"
}

// anchor is an id of an element, made of any texts.
func anchor(parts ...string) string {
	for i, part := range parts {
		parts[i] = url.QueryEscape(part)
	}
	return strings.Join(parts, "-")
}

// tone is the class of a request's state.
func tone(r csrview.Review) string {
	switch r.State {
	case csrview.Issued, csrview.Approved:
		return "good"
	case csrview.Denied, csrview.Failed:
		return "bad"
	case csrview.Pending:
	}
	return "wait"
}

// subject is the subject of a request; its name if it has none that can be read.
func subject(r csrview.Review) string {
	if r.Asked.CommonName == "" {
		return termsafe.Line(r.Name)
	}
	return termsafe.Line(strings.TrimPrefix(r.Asked.CommonName, "system:node:"))
}

// outcome is the class of a rule's outcome.
func outcome(o decision.Outcome) string {
	switch o {
	case decision.Pass:
		return "pass"
	case decision.Refuse:
		return "refuse"
	case decision.Waiting:
		return "wait"
	case decision.NotApplicable:
	}
	return "skip-rule"
}

// words is a rule's outcome in words.
func words(o decision.Outcome) string {
	switch o {
	case decision.Pass:
		return "passed"
	case decision.Refuse:
		return "refused"
	case decision.Waiting:
		return "waits"
	case decision.NotApplicable:
	}
	return "does not apply"
}

// most is the largest number of a calendar's bucket, at least 1.
func most(calendar []view.Bucket) int {
	n := 1
	for _, b := range calendar {
		n = max(n, b.Nodes+b.Planes)
	}
	return n
}
