// SPDX-License-Identifier: Apache-2.0

package stacktemplate

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Invalid says everything that is wrong with a template, its parameters or a value of it. The caller makes one
// ValidationError of it.
type Invalid struct {
	// Problems has a line for each problem, in the order of the template where it has one: the path, such as
	// Resources.VPC.Properties.CidrBlock, a colon, and the rule. A problem of the whole template has no path.
	Problems []string
	// More is how many further problems were found and are not listed.
	More int
}

// Error has all problems in one line.
func (e *Invalid) Error() string {
	text := strings.Join(e.Problems, "; ")
	if e.More > 0 {
		text += fmt.Sprintf("; and %d more problems", e.More)
	}
	return text
}

// problems gathers what is wrong.
type problems struct {
	list []string
	more int
}

// add adds a problem at a path, which is nil for the whole template.
func (p *problems) add(at *path, format string, args ...any) {
	if len(p.list) == maxProblems {
		p.more++
		return
	}
	text := fmt.Sprintf(format, args...)
	if at != nil {
		text = at.String() + ": " + text
	}
	p.list = append(p.list, text)
}

// include adds the problems of an error of this package.
func (p *problems) include(err error) {
	if invalid, ok := errors.AsType[*Invalid](err); ok {
		for _, text := range invalid.Problems {
			p.add(nil, "%s", text)
		}
		p.more += invalid.More
	}
}

// err is nil without problems.
func (p *problems) err() error {
	if len(p.list) == 0 {
		return nil
	}
	return &Invalid{Problems: p.list, More: p.more}
}

// path is a place in a template. Its text is made only for a problem: keys of strangers are long, and nested.
type path struct {
	up   *path
	name string // a key, or an index in brackets
}

func (p *path) key(name string) *path { return &path{up: p, name: name} }

func (p *path) index(i int) *path { return &path{up: p, name: "[" + strconv.Itoa(i) + "]"} }

// String has at most maxPath bytes and some more for each end: of a longer path, the first and the last part.
func (p *path) String() string {
	var names []string
	for at := p; at != nil; at = at.up {
		names = append(names, at.name)
	}
	var text strings.Builder
	for i := len(names) - 1; i >= 0; i-- {
		name := names[i]
		if text.Len() > 0 && !strings.HasPrefix(name, "[") {
			text.WriteByte('.')
		}
		if len(name) > maxPath/3 {
			name = strings.ToValidUTF8(name[:maxPath/3], "") + "…"
		}
		text.WriteString(name)
		if rest := names[:i]; text.Len() > maxPath/2 && len(rest) > 3 {
			text.WriteString(".…")
			names, i = rest, 3
		}
	}
	return text.String()
}
