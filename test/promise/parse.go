// SPDX-License-Identifier: Apache-2.0

package promise

import (
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Row is a row of the page.
type Row struct {
	Promise Promise
	Words   string        // the effect
	Figure  string        // as the page and links to it write it
	Within  time.Duration // the same
	Story   string        // the test that measures it
}

// Figures are the rows of the page, in its order.
type Figures []Row

// Read reads the page at a path.
func Read(path string) (Figures, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading promises: %w", err)
	}
	figures, err := Parse(string(raw))
	if err != nil {
		return nil, fmt.Errorf("reading promises of %s: %w", path, err)
	}
	return figures, nil
}

const header = "| id | promise | figure | measured by |"

var (
	idCell    = regexp.MustCompile("^<a id=\"([a-z]+(?:-[a-z]+)*)\"></a>`([a-z-]+)`$")
	storyCell = regexp.MustCompile("^`(Test[A-Za-z]+/[a-z_]+)`$")
)

// Parse reads the one table of the page. A line that is not a row of it is refused, so that no promise is lost by a
// mistyped line.
func Parse(page string) (Figures, error) {
	_, table, found := strings.Cut(page, header+"\n|---|---|---|---|\n")
	if !found {
		return nil, fmt.Errorf("the page has no table with the header %q", header)
	}
	var figures Figures
	seen := map[Promise]bool{}
	first := strings.Count(page[:len(page)-len(table)], "\n") + 1
	for n, line := range strings.Split(table, "\n") {
		if line == "" {
			break
		}
		row, err := parseRow(line)
		if err == nil && seen[row.Promise] {
			err = fmt.Errorf("the id %q is there twice", row.Promise)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", first+n, err)
		}
		seen[row.Promise] = true
		figures = append(figures, row)
	}
	if len(figures) == 0 {
		return nil, errors.New("the table has no rows")
	}
	return figures, nil
}

func parseRow(line string) (Row, error) {
	inner, begins := strings.CutPrefix(line, "| ")
	inner, ends := strings.CutSuffix(inner, " |")
	cells := strings.Split(inner, " | ")
	if !begins || !ends || len(cells) != 4 {
		return Row{}, fmt.Errorf("invalid row %q: must be four cells, as in %q", line, header)
	}
	id := idCell.FindStringSubmatch(cells[0])
	if id == nil || id[1] != id[2] {
		return Row{}, fmt.Errorf("invalid id %q: must be an anchor and its name, such as <a id=\"port-closed\"></a>`port-closed`", cells[0])
	}
	if strings.TrimSpace(cells[1]) == "" {
		return Row{}, fmt.Errorf("promise %q has no words", id[1])
	}
	within, err := ParseFigure(cells[2])
	if err != nil {
		return Row{}, err
	}
	story := storyCell.FindStringSubmatch(cells[3])
	if story == nil {
		return Row{}, fmt.Errorf("invalid story %q: must be a test and its step, such as `TestPromises/access`", cells[3])
	}
	return Row{Promise: Promise{id[1]}, Words: cells[1], Figure: cells[2], Within: within, Story: story[1]}, nil
}

// ParseFigure reads a figure as pages write it: a number and the unit in words.
func ParseFigure(text string) (time.Duration, error) {
	number, unit, _ := strings.Cut(text, " ")
	n, err := strconv.Atoi(number)
	lengths := map[string]time.Duration{"second": time.Second, "minute": time.Minute}
	singular, plural := strings.CutSuffix(unit, "s")
	length, known := lengths[singular]
	if err != nil || !known || n < 1 || plural != (n != 1) || strconv.Itoa(n) != number {
		return 0, fmt.Errorf(`invalid figure %q: must be a number of seconds or minutes, such as "1 second" or "11 seconds"`, text)
	}
	return time.Duration(n) * length, nil
}

// Of returns the row of a promise.
func (f Figures) Of(p Promise) (Row, error) {
	for _, row := range f {
		if row.Promise == p {
			return row, nil
		}
	}
	return Row{}, fmt.Errorf("the page has no row %q", p)
}
