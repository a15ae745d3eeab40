// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// document is one part of a file. Its number counts from 1; 0 stands for an object that no file holds.
type document struct {
	number     int
	kind, name string
	object     metav1.Object
}

func (d document) String() string {
	kind, name := d.kind, d.name
	if d.object != nil {
		name = d.object.GetName()
	}
	if kind == "" && d.object != nil {
		kind = strings.TrimPrefix(fmt.Sprintf("%T", d.object), "*v1alpha1.")
	}
	what := strings.TrimSpace(kind + " " + name)
	switch {
	case d.number == 0:
		return what
	case what == "":
		return fmt.Sprintf("document %d", d.number)
	default:
		return fmt.Sprintf("document %d (%s)", d.number, what)
	}
}

// Problem is one thing wrong with a configuration.
type Problem struct {
	Document string // which document, as "document 2 (NodeGroup workers)"
	Message  string // what is wrong, with the field's path if it is about one
	number   int
}

// Problems is everything wrong with a configuration, a line each.
type Problems struct {
	File string // empty for a configuration that was not read from a file
	List []Problem
}

func (p *Problems) Error() string {
	lines := make([]string, 0, len(p.List))
	for _, problem := range p.List {
		var parts []string
		for _, part := range []string{p.File, problem.Document, problem.Message} {
			if part != "" {
				parts = append(parts, part)
			}
		}
		lines = append(lines, strings.Join(parts, ": "))
	}
	return strings.Join(lines, "\n")
}

func (p *Problems) say(d document, message string) {
	p.List = append(p.List, Problem{Document: d.String(), Message: message, number: d.number})
}

func (p *Problems) add(d document, errs field.ErrorList) {
	for _, err := range errs {
		p.say(d, err.Error())
	}
}

func (p *Problems) orNil() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int { return a.number - b.number })
	return p
}
