// SPDX-License-Identifier: Apache-2.0

package clusterconfig

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/internal/platform/strictyaml"
)

// document is one part of a file. Its number counts from 1; 0 stands for an object that no file holds.
type document struct {
	number     int
	kind, name string
	object     metav1.Object
	text       *strictyaml.Document // nil for an object that no file holds
	unread     []strictyaml.Wrong   // fields that could not be read
	defaultMax bool                 // it is a NodeGroup that leaves out maxSize
}

func (d document) String() string {
	kind, name := d.kind, d.name
	switch object := d.object.(type) {
	case *v1alpha1.Cluster:
		name = object.Spec.Name
	case *v1alpha1.NodeGroup:
		name = object.Spec.Name
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
	Message  string // with the field's path if it is about a field
	Line     int    // of the file, 0 if it is about all of the document
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
		line := ""
		if problem.Line > 0 {
			line = fmt.Sprintf("line %d", problem.Line)
		}
		for _, part := range []string{p.File, problem.Document, line, problem.Message} {
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
	about := strictyaml.About(errs)
	p.wrong(d, strictyaml.And(d.unread, about)[len(d.unread):])
}

// wrong says what is wrong with a document, each with its line of the file.
func (p *Problems) wrong(d document, wrong []strictyaml.Wrong) {
	for _, w := range wrong {
		line := 0
		if d.text != nil {
			line = d.text.LineOf(w)
		}
		p.List = append(p.List, Problem{Document: d.String(), Message: w.Text, Line: line, number: d.number})
	}
}

func (p *Problems) orNil() error {
	if len(p.List) == 0 {
		return nil
	}
	slices.SortStableFunc(p.List, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.number, b.number), cmp.Compare(a.Line, b.Line))
	})
	return p
}
