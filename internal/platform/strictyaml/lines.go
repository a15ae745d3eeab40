// SPDX-License-Identifier: Apache-2.0

package strictyaml

import (
	"cmp"
	"fmt"
	"iter"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Wrong is one thing wrong with a document.
type Wrong struct {
	Path string // of the value, as in signers[0].duration; "" if it is about the whole document
	Text string // the problem, with the path

	line   int  // in the file, if it is known without the path
	spoils bool // the value could not be read, so that what is checked of it later means nothing
}

// About makes problems with values of problems with fields.
func About(errs field.ErrorList) []Wrong {
	var all []Wrong
	for _, e := range errs {
		all = append(all, Wrong{Path: e.Field, Text: e.Error()})
	}
	return all
}

// And adds what was found out later, without what only follows from values that could not be read.
func And(wrong, later []Wrong) []Wrong {
	spoiled, around := map[string]bool{}, map[string]bool{}
	for _, w := range wrong {
		if w.spoils {
			spoiled[w.Path] = true
			for path := range outwards(w.Path) {
				around[path] = true
			}
		}
	}
	all := slices.Clone(wrong)
	for _, l := range later {
		follows := around[l.Path]
		for path := range outwards(l.Path) {
			follows = follows || spoiled[path]
		}
		if !follows {
			all = append(all, l)
		}
	}
	return all
}

// outwards goes from a path to those of what is around it: a[1].b, a[1], a. A key with a dot in it makes more of them,
// which are nothing's.
func outwards(path string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for path != "" && yield(path) {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
	}
}

// Lines says what is wrong in the order of the lines of the file, each problem with its own. A value that is missing
// has the line of what it is missing in; nothing has one that is missing in the document itself, and comes first.
func (d *Document) Lines(wrong []Wrong) []string {
	wrong = slices.Clone(wrong)
	for i, w := range wrong {
		wrong[i].line = d.LineOf(w)
	}
	slices.SortStableFunc(wrong, func(a, b Wrong) int { return cmp.Compare(a.line, b.line) })
	var lines []string
	for _, w := range wrong {
		text := w.Text
		if w.line > 0 {
			text = fmt.Sprintf("line %d: %s", w.line, w.Text)
		}
		lines = append(lines, text)
	}
	return lines
}

// LineOf is the line of the file that a problem is in; 0 if it is about the document itself.
func (d *Document) LineOf(w Wrong) int {
	if w.line > 0 {
		return w.line
	}
	line, path := 0, w.Path
	for at := d.root(); at != nil; {
		if at.Kind == yaml.AliasNode {
			at = at.Alias
			continue
		}
		var found int
		if at, path, found = step(at, path); found > 0 {
			line = found + d.before
		}
	}
	return line
}

// root is nil if the text is not YAML.
func (d *Document) root() *yaml.Node {
	if d.tree == nil {
		d.tree = &yaml.Node{}
		if err := yaml.Unmarshal(d.Text, d.tree); err != nil {
			d.tree = &yaml.Node{} // the reader of the values says so
		}
	}
	if len(d.tree.Content) == 0 {
		return nil
	}
	return d.tree.Content[0]
}

// step goes on by one part of the path, to the value and the line in which it or its key stands.
func step(at *yaml.Node, path string) (value *yaml.Node, rest string, line int) {
	switch at.Kind {
	case yaml.SequenceNode:
		text, rest, ok := strings.Cut(strings.TrimPrefix(path, "["), "]")
		if n, err := strconv.Atoi(text); ok && err == nil && 0 <= n && n < len(at.Content) {
			return at.Content[n], rest, at.Content[n].Line
		}
	case yaml.MappingNode:
		longest := -1
		for i := 0; i+1 < len(at.Content); i += 2 {
			key := at.Content[i]
			if after, ok := afterKey(path, key.Value); ok && len(key.Value) > longest {
				longest, value, rest, line = len(key.Value), at.Content[i+1], after, key.Line
			}
		}
		return value, rest, line
	case yaml.DocumentNode, yaml.ScalarNode, yaml.AliasNode:
	}
	return nil, "", 0
}

// afterKey takes a key off a path: keys may have dots in them, and stand in brackets where they are data.
func afterKey(path, key string) (rest string, ok bool) {
	if rest, ok := strings.CutPrefix(path, "["+key+"]"); ok {
		return rest, true
	}
	path = strings.TrimPrefix(path, ".")
	rest, ok = strings.CutPrefix(path, key)
	return rest, ok && path != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// lineOf is what the YAML library's problems begin with.
var lineOf = regexp.MustCompile(`^line (\d+): `)

// yamlErrors makes problems of the errors of the YAML library, which reports several in one.
func (d *Document) yamlErrors(err error) []Wrong {
	text := strings.TrimPrefix(err.Error(), "error converting YAML to JSON: ")
	text = strings.TrimPrefix(strings.TrimPrefix(text, "yaml: "), "unmarshal errors:")
	var all []Wrong
	for line := range strings.SplitSeq(text, "\n") {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		w := Wrong{Text: line}
		if found := lineOf.FindStringSubmatch(line); found != nil {
			w.line, _ = strconv.Atoi(found[1])
			w.line += d.before
			w.Text = strings.TrimPrefix(line, found[0])
		}
		all = append(all, w)
	}
	return all
}
