// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"maps"
	"os"
	"strings"
	"testing"
)

const allowedStart = "# Benchmarks\n\nText.\n\n### Allowed ratios\n\n| measure | ratio | since | why |\n|---|---|---|---|\n"

// turn is what every measure was, with one changed.
func turn(measure string, figure float64) figures {
	f := figures{joinsCPU: 10, joinsWall: 5, upWall: 8, planeMemory: 900}
	if measure != "" {
		f[measure] *= figure
	}
	return f
}

func TestJudge(t *testing.T) {
	allowed, err := parseAllowed(allowedStart + "| joins: CPU seconds | 1.45 | 2026-11-24 | found from outside |\n")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		measure string
		ratio   float64
		want    string // of the error; "" if there is none
	}{
		"unchanged":                {"", 1, ""},
		"a fifth more":             {upWall, 1.2, ""},
		"at the limit":             {upWall, 1.25, ""},
		"1.3 times":                {upWall, 1.3, "up: seconds: 1.30 times 144cca2, more than 1.25: take it back"},
		"1.3 times the memory":     {planeMemory, 1.3, "plane: MiB: 1.30 times"},
		"1.3 times, of joins":      {joinsWall, 1.3, "joins: seconds: 1.30 times"},
		"faster":                   {joinsWall, 0.5, ""},
		"1.4 times, 1.45 allowed":  {joinsCPU, 1.4, ""},
		"1.45 times, 1.45 allowed": {joinsCPU, 1.45, ""},
		"1.5 times, 1.45 allowed":  {joinsCPU, 1.5, "joins: CPU seconds: 1.50 times 144cca2, more than 1.45"},
		"nothing measured":         {upWall, 0, "give no ratio"},
	} {
		t.Run(name, func(t *testing.T) {
			ratios := compare([]figures{turn("", 1), turn("", 1)}, []figures{turn(c.measure, c.ratio), turn(c.measure, c.ratio)}, speedMeasures)
			err := judge(ratios, allowed)
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if err := judge(compare(nil, nil, speedMeasures), nil); err == nil {
		t.Error("no turn passes")
	}
	if err := judge(compare([]figures{{}}, []figures{turn("", 1)}, speedMeasures), nil); err == nil {
		t.Error("an earlier commit without figures passes")
	}
}

func TestTheLeastOfTurnsCounts(t *testing.T) {
	ratios := compare([]figures{turn(upWall, 1), turn(upWall, 3)}, []figures{turn(upWall, 2), turn(upWall, 1.5)}, speedMeasures)
	var out bytes.Buffer
	if err := printRatios(&out, ratios, nil); err != nil {
		t.Fatal(err)
	}
	if want := []string{"up: seconds", "8.00", "12.00", "1.50", "1.25"}; !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(want, " ")) {
		t.Errorf("printed:\n%swant a line %q", out.String(), want)
	}
}

func TestParseAllowed(t *testing.T) {
	const row = "| joins: CPU seconds | 1.45 | 2026-11-24 | found from outside |\n"
	for name, c := range map[string]struct {
		page string
		want map[string]float64
		err  string
	}{
		"no line":                     {allowedStart, map[string]float64{}, ""},
		"a line":                      {allowedStart + row + "\nText | of | the | page.\n", map[string]float64{joinsCPU: 1.45}, ""},
		"two lines":                   {allowedStart + row + "| up: seconds | 1.3 | 2026-11-25 | why |\n## Next\n| a | table |\n", map[string]float64{joinsCPU: 1.45, upWall: 1.3}, ""},
		"no section":                  {"# Benchmarks\n", nil, "no section"},
		"no table":                    {"\n### Allowed ratios\n\nText.\n", nil, "must begin with"},
		"the table of another":        {"\n### Allowed ratios\n\n## Next\n\n| measure | ratio | since | why |\n|---|---|---|---|\n", nil, "must begin with"},
		"other columns":               {"\n### Allowed ratios\n\n| measure | since | ratio | why |\n|---|---|---|---|\n", nil, "must begin with"},
		"a cell less":                 {allowedStart + "| joins: CPU seconds | 1.45 | 2026-11-24 |\n", nil, "3 cells, not 4"},
		"a row that is not closed":    {allowedStart + "| joins: CPU seconds | 1.45 | 2026-11-24 | why\n", nil, "cells, not 4"},
		"an unknown measure":          {allowedStart + "| join: CPU seconds | 1.45 | 2026-11-24 | why |\n", nil, `unknown measure "join: CPU seconds"`},
		"no number":                   {allowedStart + "| joins: CPU seconds | 1,45 | 2026-11-24 | why |\n", nil, `invalid ratio "1,45"`},
		"not a number":                {allowedStart + "| joins: CPU seconds | NaN | 2026-11-24 | why |\n", nil, `invalid ratio "NaN"`},
		"no limit":                    {allowedStart + "| joins: CPU seconds | Inf | 2026-11-24 | why |\n", nil, `invalid ratio "Inf"`},
		"what needs no line":          {allowedStart + "| joins: CPU seconds | 1.25 | 2026-11-24 | why |\n", nil, `invalid ratio "1.25"`},
		"no date":                     {allowedStart + "| joins: CPU seconds | 1.45 | | why |\n", nil, `invalid date ""`},
		"a date of another form":      {allowedStart + "| joins: CPU seconds | 1.45 | 24.11.2026 | why |\n", nil, `invalid date "24.11.2026"`},
		"no reason":                   {allowedStart + "| joins: CPU seconds | 1.45 | 2026-11-24 | |\n", nil, "no reason"},
		"a measure twice":             {allowedStart + row + row, nil, "has a line already"},
		"a good line after a bad one": {allowedStart + "| joins: CPU seconds |\n" + row, nil, "1 cells, not 4"},
	} {
		t.Run(name, func(t *testing.T) {
			allowed, err := parseAllowed(c.page)
			if (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("got %v, want %q", err, c.err)
			}
			got := map[string]float64{}
			for measure, a := range allowed {
				got[measure] = a.ratio
			}
			if err == nil && !maps.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// The page and the file must be understood before anything is measured.
func TestThePageAndTheFileOfRatios(t *testing.T) {
	page, err := os.ReadFile("../../" + allowedPage)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := parseAllowed(string(page)); err != nil {
		t.Error(err)
	}
	kept, err := os.ReadFile("../../" + speedFile)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := record(string(kept), "2026-11-24", strings.Repeat("0", 40), nil); err != nil {
		t.Errorf("%s: %v", speedFile, err)
	}
}
