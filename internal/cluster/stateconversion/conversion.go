// SPDX-License-Identifier: Apache-2.0

package stateconversion

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"muster.dev/muster/internal/platform/statedir"
	"muster.dev/muster/internal/platform/version"
)

// Step brings a state directory from one layout to the next.
type Step struct {
	// Name of what the step converts, for people.
	Name string
	// Find looks for what is to be converted, and returns what does so; nil if there is nothing. It changes nothing, and
	// its error says why there can be no conversion. The function that it returns may have been cut short before.
	Find func(statedir.Dir) (convert func() error, err error)
}

// Conversion is the conversion of one state directory by one release.
type Conversion struct {
	dir     statedir.Dir
	steps   []Step
	release string
	// wrote is called after each write; a test ends the conversion there.
	wrote func()
}

// Of is the conversion of a state directory by this release.
func Of(dir statedir.Dir) Conversion {
	return Conversion{dir: dir, steps: Steps(), release: version.Version, wrote: func() {}}
}

// Plan is what a conversion is about to do. It is the zero value if the directory is this release's.
type Plan struct {
	// From and To are the releases, in words.
	From, To string
	// Steps are the names of what is converted, if there is anything of that in the directory.
	Steps []string
	// Saved is the directory where the records of before are kept.
	Saved string
}

// String says the plan in one line; empty if there is nothing to do.
func (p Plan) String() string {
	if p.To == "" {
		return ""
	}
	what := ""
	if len(p.Steps) > 0 {
		what = ": " + strings.Join(p.Steps, "; ")
	}
	return fmt.Sprintf("The state directory of %s is converted to that of %s%s. The records of before are kept in %s.", p.From, p.To, what, p.Saved)
}

// Check checks all steps that are due, and returns what they convert. It changes nothing. A state directory that is not
// in use needs no conversion; the error refuses one that this release can neither read nor convert.
func (c Conversion) Check() (Plan, error) {
	_, next, err := c.due()
	if err != nil {
		return Plan{}, err
	}
	return c.check(next)
}

// Mark says that a new state directory is of this release. It comes before everything else that is kept there.
func (c Conversion) Mark() error {
	newest := oldest + len(c.steps)
	if err := writeWriter(c.dir, writer{Release: c.release, Layout: newest, From: newest}); err != nil {
		return err
	}
	return writeLayout(c.dir, newest)
}

// Run converts a state directory, and returns at once if there is nothing to convert. It may be cut short at any point
// and called again. Nobody else may write to the directory meanwhile.
func (c Conversion) Run(log *slog.Logger) error {
	is, next, err := c.due()
	if err != nil {
		return err
	}
	plan, err := c.check(next)
	if err != nil {
		return err
	}
	if plan.To != "" {
		log.Info("converting the state directory", "from", plan.From, "what", strings.Join(plan.Steps, "; "), "saved", plan.Saved)
	}
	if next.save {
		if err := save(c.dir, plan.Saved); err != nil {
			return err
		}
		c.wrote()
	}
	if next.by != is.by {
		if err := writeWriter(c.dir, next.by); err != nil {
			return err
		}
		c.wrote()
	}
	for at := next.first; at < len(c.steps); at++ {
		if err := c.take(c.steps[at]); err != nil {
			return c.problem(fmt.Errorf("is not converted: %s: %w", c.steps[at].Name, err))
		}
		if err := writeLayout(c.dir, oldest+at+1); err != nil {
			return err
		}
		c.wrote()
	}
	return nil
}

// take takes one step.
func (c Conversion) take(step Step) error {
	convert, err := step.Find(c.dir)
	if err != nil || convert == nil {
		return err
	}
	if err := convert(); err != nil {
		return err
	}
	c.wrote()
	return nil
}

func (c Conversion) due() (found, due, error) {
	is, err := look(c.dir)
	if err != nil {
		return is, due{}, err
	}
	next, err := decide(is, len(c.steps), c.release)
	if err != nil {
		return is, due{}, c.problem(err)
	}
	return is, next, nil
}

// check has all steps that are due look for what they convert, and tells all that keeps them from it.
func (c Conversion) check(next due) (Plan, error) {
	if next.first == len(c.steps) {
		return Plan{}, nil
	}
	plan := Plan{From: "an earlier Muster", To: "Muster " + c.release, Saved: savedIn(c.dir, savedName(next.by.Before, next.by.From))}
	if next.by.Before != "" {
		plan.From = "Muster " + next.by.Before
	}
	var problems []string
	for _, step := range c.steps[next.first:] {
		convert, err := step.Find(c.dir)
		switch {
		case err != nil:
			problems = append(problems, fmt.Sprintf("%s: %v", step.Name, err))
		case convert != nil:
			plan.Steps = append(plan.Steps, step.Name)
		}
	}
	if len(problems) > 0 {
		return Plan{}, c.problem(errors.New("cannot be converted, and nothing was changed: " + strings.Join(problems, "; ")))
	}
	return plan, nil
}

// problem is an error of the state directory.
func (c Conversion) problem(err error) error { return fmt.Errorf("state directory %s %w", c.dir, err) }
