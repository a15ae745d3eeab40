// SPDX-License-Identifier: Apache-2.0

package cause

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
)

//go:embed causes/*.yaml
var files embed.FS

// Catalogue is a set of causes that fit each other.
type Catalogue struct {
	causes []Cause
	byID   map[ID]int
}

// Default returns the catalogue that is compiled in.
var Default = sync.OnceValues(func() (Catalogue, error) { return ReadAll(files) })

// ReadAll reads the files causes/*.yaml of a file system. The error names the file of each problem.
func ReadAll(from fs.FS) (Catalogue, error) {
	names, err := fs.Glob(from, "causes/*.yaml")
	if err != nil {
		return Catalogue{}, fmt.Errorf("listing the catalogue of causes: %w", err)
	}
	all := make([]Cause, 0, len(names))
	for _, name := range names {
		data, err := fs.ReadFile(from, name)
		if err != nil {
			return Catalogue{}, fmt.Errorf("reading the catalogue of causes: %w", err)
		}
		c, err := Read(data)
		if err != nil {
			return Catalogue{}, fmt.Errorf("%s: %w", name, err)
		}
		if want := strings.TrimSuffix(path.Base(name), ".yaml"); string(c.ID) != want {
			return Catalogue{}, fmt.Errorf("%s: its id is %s: a file is named after its cause", name, c.ID)
		}
		all = append(all, c)
	}
	return New(all)
}

// New makes a catalogue of causes, sorted by number. It refuses two causes with one number, and references that lead
// nowhere or in a circle.
func New(causes []Cause) (Catalogue, error) {
	c := Catalogue{causes: slices.Clone(causes), byID: map[ID]int{}}
	slices.SortFunc(c.causes, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(a.ID.Number(), b.ID.Number()), cmp.Compare(a.ID, b.ID))
	})
	for i, one := range c.causes {
		if i > 0 && c.causes[i-1].ID.Number() == one.ID.Number() {
			return Catalogue{}, fmt.Errorf("%s and %s have one number: a number is never given twice", c.causes[i-1].ID, one.ID)
		}
		c.byID[one.ID] = i
	}
	for _, one := range c.causes {
		for _, other := range slices.Concat(one.Excludes, one.Implies) {
			if _, ok := c.byID[other]; !ok || other == one.ID {
				return Catalogue{}, fmt.Errorf("%s names %s, which is not another cause of the catalogue", one.ID, other)
			}
		}
		if c.leads(one.ID, one.ID, map[ID]bool{}) {
			return Catalogue{}, fmt.Errorf("%s excludes or implies itself, through others", one.ID)
		}
	}
	return c, nil
}

// leads reports whether references lead from a cause to another.
func (c Catalogue) leads(from, to ID, seen map[ID]bool) bool {
	if seen[from] {
		return false
	}
	seen[from] = true
	one := c.causes[c.byID[from]]
	return slices.ContainsFunc(slices.Concat(one.Excludes, one.Implies), func(next ID) bool { return next == to || c.leads(next, to, seen) })
}

// All returns the causes, sorted by number.
func (c Catalogue) All() []Cause { return slices.Clone(c.causes) }

// Find returns the cause with an identifier.
func (c Catalogue) Find(id ID) (Cause, bool) {
	i, ok := c.byID[id]
	if !ok {
		return Cause{}, false
	}
	return c.causes[i], true
}

// Matching returns the causes that evidence shows, sorted by number.
func (c Catalogue) Matching(source Source, code, text string) []Cause {
	var found []Cause
	for _, one := range c.causes {
		if one.Matches(source, code, text) {
			found = append(found, one)
		}
	}
	return found
}
