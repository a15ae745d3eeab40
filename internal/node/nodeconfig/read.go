// SPDX-License-Identifier: Apache-2.0

package nodeconfig

import (
	"errors"
	"fmt"
	"strings"

	"muster.dev/muster/internal/platform/strictyaml"
)

// Limits of reading.
const (
	MaxDocument  = 1 << 20 // bytes of a source
	MaxDocuments = 128     // of all sources
)

// Source is a document, or several with --- between them, and its name for people.
type Source struct {
	Name    string
	Content []byte
}

// Merged is what all documents together say.
type Merged struct {
	Spec Spec
	// Origins tells for each value, by its path in the document such as spec.cluster.name, the name of the source that
	// it came from. Elements of spec.kubelet.flags have one each, other lists have one.
	Origins map[string]string
	// Warnings are what a lenient reading ignored.
	Warnings []string
}

// Problems lists what is wrong with documents, a line for each problem. No line repeats a token.
type Problems []string

func (p Problems) Error() string { return strings.Join(p, "\n") }

// ErrNone means that there is no document.
var ErrNone = errors.New("there is no NodeConfig")

// Read decodes documents and merges them in their order: later values win, and empty ones never do. An unknown field is
// a problem, or, if lenient, a warning. All problems come back as one error, Problems.
func Read(sources []Source, lenient bool) (Merged, error) {
	r := reader{lenient: lenient}
	m := newMerger()
	count := 0
	for _, source := range sources {
		for _, d := range r.documents(source) {
			if count++; count > MaxDocuments {
				return Merged{}, Problems{fmt.Sprintf("there are more than %d documents", MaxDocuments)}
			}
			if tree, ok := r.decode(d); ok {
				r.say(d.Name, m.add(d.Name, tree)...)
			}
		}
	}
	if len(r.problems) > 0 {
		return Merged{}, r.problems
	}
	if count == 0 {
		return Merged{}, ErrNone
	}
	spec, err := m.spec()
	if err != nil {
		return Merged{}, fmt.Errorf("merging NodeConfigs: %w", err)
	}
	return Merged{Spec: spec, Origins: m.origins, Warnings: r.warnings}, nil
}

// reader gathers what is wrong.
type reader struct {
	lenient  bool
	problems Problems
	warnings []string
}

func line(name, problem string) string {
	return WithoutSecrets(name + ": " + strings.ReplaceAll(problem, "\n", " "))
}

func (r *reader) say(name string, problems ...string) {
	for _, problem := range problems {
		r.problems = append(r.problems, line(name, problem))
	}
}

// unknown is a problem that a lenient reading puts up with.
func (r *reader) unknown(name, problem string) {
	if r.lenient {
		r.warnings = append(r.warnings, line(name, problem+"; it is ignored"))
		return
	}
	r.say(name, problem)
}

// documents splits a source into what it holds.
func (r *reader) documents(source Source) []Source {
	if len(source.Content) > MaxDocument {
		r.say(source.Name, fmt.Sprintf("has %d bytes; at most %d are read", len(source.Content), MaxDocument))
		return nil
	}
	parts, err := strictyaml.Documents(source.Content)
	if err != nil {
		r.say(source.Name, err.Error())
		return nil
	}
	if len(parts) == 0 {
		r.say(source.Name, "is empty; it must hold a NodeConfig")
	}
	var documents []Source
	for i, part := range parts {
		d := Source{Name: source.Name, Content: part}
		if len(parts) > 1 {
			d.Name = fmt.Sprintf("%s, document %d", source.Name, i+1)
		}
		documents = append(documents, d)
	}
	return documents
}
