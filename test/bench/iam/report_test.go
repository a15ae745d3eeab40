// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"strings"
	"testing"
)

func rounds(system, part, load string, callers int, rates ...float64) (all []result) {
	for round, rate := range rates {
		all = append(all, result{System: system, Part: part, Load: load, Callers: callers, Round: round, Rate: rate, P99: rate / 1000})
	}
	return all
}

func sample() *report {
	r := &report{options: options{rounds: 3}}
	for _, all := range [][]result{
		rounds("warm", partVerify, "", 32, 100_000, 200_000, 900_000),
		rounds("shipped", partVerify, "", 32, 1000, 4000, 3000),
		rounds("remote", partVerify, "", 32, 30_000, 20_000, 24_000),
		rounds("own-whole", partReview, "logins by new tokens, 1000/s", 0, 990, 1000, 6000),
	} {
		r.results = append(r.results, all...)
	}
	return r
}

func TestMediansAreOfRoundsAndRatiosOfTheSameRound(t *testing.T) {
	r := sample()
	rows := r.rows()
	if len(rows) != 2 || rows[0].part != partVerify || rows[1].part != partReview {
		t.Fatalf("the rows are %v", rows)
	}
	medians := r.medians(rows[0])
	if len(medians) != 3 || medians[0].System != "shipped" || medians[2].System != "warm" {
		t.Fatalf("the systems are not in their order: %v", medians)
	}
	remote := medians[1]
	if remote.Rate != 24_000 || remote.Round != 3 {
		t.Errorf("median of %d rounds is %g", remote.Round, remote.Rate)
	}
	if remote.ToShipped != 8 { // of 30, 5 and 8: not of the medians
		t.Errorf("it is %g times as fast", remote.ToShipped)
	}
	if remote.ToPool != 0 {
		t.Errorf("there is nothing to compare with, and it is %g", remote.ToPool)
	}
}

func TestAimsAreMetOrMissed(t *testing.T) {
	var out strings.Builder
	if err := sample().writeTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"met     remote: verified per second, asking STS 2.4e+04, at least 2.4e+04",
		"missed  warm: decided per second, seen before 2e+05, at least 3e+05",
		"met     own-whole: p99 ms, logins by new tokens, 1000/s 1, at most 5",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out.String())
		}
	}
}

func TestAsJSONNothingIsMissing(t *testing.T) {
	var out strings.Builder
	if err := sample().writeJSON(&out); err != nil {
		t.Fatal(err)
	}
	var read struct{ Medians, Results []result }
	if err := json.Unmarshal([]byte(out.String()), &read); err != nil {
		t.Fatal(err)
	}
	if len(read.Medians) != 4 || len(read.Results) != 12 {
		t.Errorf("%d medians of %d results", len(read.Medians), len(read.Results))
	}
}

func TestEverySystemAndPartHasItsName(t *testing.T) {
	o, err := parse([]string{"-only", "verify,flood", "-systems", "own,warm"})
	if err != nil || len(o.parts) != 2 || len(o.systems) != 2 {
		t.Fatalf("%v, %v", o, err)
	}
	for _, wrong := range [][]string{{"-only", "more"}, {"-systems", "none"}, {"-o", "xml"}, {"-rounds", "0"}} {
		if _, err := parse(append([]string{"-only", "verify"}, wrong...)); err == nil {
			t.Errorf("%v is accepted", wrong)
		}
	}
}
