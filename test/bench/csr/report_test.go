// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

// Ratios are of the same round, with the faster floor; kcm, which runs in one round, is compared with in all.
func TestReportComparesWithinARound(t *testing.T) {
	r := report{started: time.Now(), options: options{systems: []string{"floor-16", "floor-64", "kcm", "kcm-raised", "muster"}, rounds: 3, slowRounds: 1}}
	add := func(round int, system string, rate float64) {
		l := load{kind: "client", size: 1000}
		r.add(result{System: system, Load: l.String(), Kind: l.kind, Size: l.size, Round: round, Rate: rate, ControllerCPU: 0.5})
	}
	for round, factor := range []float64{1, 0.5, 3} { // a slow round and a fast one change no ratio
		add(round, "floor-16", 500*factor)
		add(round, "floor-64", 400*factor)
		add(round, "kcm-raised", 250*factor)
		add(round, "muster", 450*factor)
	}
	add(0, "kcm", 10)
	rows := r.medians("burst of 1000")
	if len(rows) != 5 {
		t.Fatalf("%d rows", len(rows))
	}
	m := rows[4]
	if m.System != "muster" || m.Rate != 450 || m.ToFloor != 0.9 || m.ToRaised != 1.8 || m.ToDefault != 45 || m.Round != 3 {
		t.Errorf("%+v", m)
	}
	var out bytes.Buffer
	if err := r.writeTable(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"missed  burst of 1000: of the floor 0.9, at least 0.95", "met     burst of 1000: of kcm-raised 1.8, at least 1.3",
		"missed  burst of 1000: of kcm 45, at least 50", "met     burst of 1000: ms of controller CPU 0.5, at most 0.6",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestPercentileIsAValueThatWasMeasured(t *testing.T) {
	values := make([]float64, 100)
	for i := range values {
		values[i] = float64(i + 1)
	}
	for p, want := range map[float64]float64{50: 50, 99: 99, 100: 100, 0: 1} {
		if got := percentile(values, p); got != want {
			t.Errorf("percentile %g is %g, not %g", p, got, want)
		}
	}
	if got := percentile([]float64{7}, 99); got != 7 {
		t.Errorf("of one value it is %g", got)
	}
}

func TestWhatIsLeftOutIsTold(t *testing.T) {
	o, err := parse([]string{"-rounds", "2", "-bin", t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	b := bench{options: o}
	told := strings.Join(b.leftOut(), "\n")
	for _, want := range []string{"kcm: burst of 5000, which takes about 500 s", "kcm: 1 of 2 rounds", "kcm-raised: the mixed burst"} {
		if !strings.Contains(told, want) {
			t.Errorf("no %q in\n%s", want, told)
		}
	}
	for _, args := range [][]string{{"-systems", "nothing"}, {"-bursts", "0"}, {"-o", "xml"}, {"-flow", "none"}, {"-rounds", "0"}} {
		if _, err := parse(args); err == nil {
			t.Errorf("%v is accepted", args)
		}
	}
}
