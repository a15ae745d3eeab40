// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The names of the one action and of what it is about.
const (
	// Interrupt is the id of the action.
	Interrupt = "aws:ec2:send-spot-instance-interruptions"
	// SpotInstance is the type of the resources of targets.
	SpotInstance = "aws:ec2:spot-instance"
	// spotInstances is the action's name for its target.
	spotInstances = "SpotInstances"
	// before is the action's parameter.
	before = "durationBeforeInterruption"
)

// The modes of targets that resolve to nothing.
const (
	EmptyFails = "fail"
	EmptySkips = "skip"
)

const (
	// notice is how long before an interruption EC2 announces it; no action gives less.
	notice = 2 * time.Minute
	// longest is the most that an action may give.
	longest = 15 * time.Minute
	// mostTargets and mostActions are FIS's limits of a template.
	mostTargets, mostActions = 10, 20
)

// Template is what an experiment does. It is the data of a record.
type Template struct {
	Description string            `json:"description"`
	RoleARN     string            `json:"roleArn"`
	Targets     map[string]Target `json:"targets,omitempty"`
	Actions     map[string]Action `json:"actions,omitempty"`
	// Empty is what happens if a target resolves to nothing: EmptyFails or EmptySkips.
	Empty string `json:"empty"`
}

// Target chooses instances: by ARNs or by tags, one of the two, and by filters.
type Target struct {
	ResourceType string            `json:"resourceType"`
	ARNs         []string          `json:"arns,omitempty"`
	Tags         map[string]string `json:"tags,omitempty"`
	Filters      []Filter          `json:"filters,omitempty"`
	// Mode is ALL, COUNT(n) or PERCENT(n).
	Mode string `json:"mode"`
}

// Filter is a condition about an attribute of an instance, which must have any of the values.
type Filter struct {
	Path   string   `json:"path"`
	Values []string `json:"values"`
}

// Action is one action of a template.
type Action struct {
	ID          string            `json:"id"`
	Description string            `json:"description,omitempty"`
	Parameters  map[string]string `json:"parameters,omitempty"`
	Targets     map[string]string `json:"targets,omitempty"`
}

// Check says in one line why a template is not one; nil if it is.
func (t *Template) Check() error {
	switch {
	case t.Description == "" || len(t.Description) > 512:
		return fmt.Errorf("the description has %d characters: it must have from 1 to 512", len(t.Description))
	case t.Empty != EmptyFails && t.Empty != EmptySkips:
		return fmt.Errorf("the emptyTargetResolutionMode is %.50q: it must be %s or %s", t.Empty, EmptyFails, EmptySkips)
	case len(t.Actions) == 0 || len(t.Actions) > mostActions:
		return fmt.Errorf("there are %d actions: there must be from 1 to %d", len(t.Actions), mostActions)
	case len(t.Targets) > mostTargets:
		return fmt.Errorf("there are %d targets: there may be %d", len(t.Targets), mostTargets)
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(t.Actions)) {
		a := t.Actions[name]
		if err := a.check(t.Targets); err != nil {
			return fmt.Errorf("action %.64q: %w", name, err)
		}
		used[a.Targets[spotInstances]] = true
	}
	for _, name := range slices.Sorted(maps.Keys(t.Targets)) {
		target := t.Targets[name]
		if err := target.check(); err != nil {
			return fmt.Errorf("target %.64q: %w", name, err)
		}
		if !used[name] {
			return fmt.Errorf("target %.64q: it is of no action: name it in one, or leave it out", name)
		}
	}
	return nil
}

func (a Action) check(targets map[string]Target) error {
	if a.ID != Interrupt {
		return fmt.Errorf("the actionId is %.100q: Muster has %s only; `muster drill` has other troubles", a.ID, Interrupt)
	}
	for key := range a.Parameters {
		if key != before {
			return fmt.Errorf("it has the parameter %.100q: the action takes %s only", key, before)
		}
	}
	if _, err := a.Before(); err != nil {
		return err
	}
	target, ok := a.Targets[spotInstances]
	if !ok || len(a.Targets) != 1 {
		return fmt.Errorf("it has the targets %.100q: it must have one, %s", slices.Sorted(maps.Keys(a.Targets)), spotInstances)
	}
	if _, ok := targets[target]; !ok {
		return fmt.Errorf("its target %.64q is not among the targets of the template", target)
	}
	return nil
}

// Before is how long after the action begins an instance is interrupted.
func (a Action) Before() (time.Duration, error) {
	text := a.Parameters[before]
	d, err := parseDuration(text)
	if err != nil || d < notice || d > longest {
		return 0, fmt.Errorf("%s is %.50q: it must be a duration from PT2M to PT15M", before, text)
	}
	return d, nil
}

// Target is the name of the target of the action.
func (a Action) Target() string { return a.Targets[spotInstances] }

var durationForm = regexp.MustCompile(`^PT(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,5})S)?$`)

// parseDuration reads a duration of ISO 8601, of hours, minutes and seconds.
func parseDuration(text string) (time.Duration, error) {
	parts := durationForm.FindStringSubmatch(text)
	if parts == nil || strings.HasSuffix(text, "T") {
		return 0, fmt.Errorf("%.50q is not a duration", text)
	}
	var total time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		if parts[i+1] == "" {
			continue
		}
		n, err := strconv.Atoi(parts[i+1])
		if err != nil {
			return 0, fmt.Errorf("reading the duration %.50q: %w", text, err)
		}
		total += time.Duration(n) * unit
	}
	return total, nil
}
