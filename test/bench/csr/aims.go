// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// writeAims says for each thing that muster's controller is meant to reach whether it did.
func (r *report) writeAims(p *printer) {
	header := false
	aim := func(load, what string, got, want float64, atLeast bool) {
		if !header {
			p.printf("\nwhat muster aims at\n")
			header = true
		}
		sign, met := "at most", got <= want
		if atLeast {
			sign, met = "at least", got >= want
		}
		word := "missed"
		if met {
			word = "met"
		}
		p.printf("  %-7s %s: %s %.3g, %s %.3g\n", word, load, what, got, sign, want)
	}
	for _, load := range r.loadNames() {
		for _, m := range r.medians(load) {
			if m.System != "muster" {
				continue
			}
			if strings.HasPrefix(load, "steady") {
				aim(load, "p99 ms", m.P99, 15, false)
			}
			if m.ToFloor > 0 {
				aim(load, "of the floor", m.ToFloor, 0.95, true)
			}
			if m.ToRaised > 0 {
				aim(load, "of kcm-raised", m.ToRaised, 1.3, true)
			}
			if m.ToDefault > 0 && m.Size >= 1000 { // its limit lets a small burst through
				aim(load, "of kcm", m.ToDefault, 50, true)
			}
			if m.Size >= 1000 && !strings.HasPrefix(load, "steady") { // below, a tick of the clock and waking up are what is measured
				aim(load, "ms of controller CPU", m.ControllerCPU, 0.6, false)
				aim(load, "access reviews per request", m.Reviews, 0.01, false)
			}
			if m.Size >= 5000 {
				aim(load, "MiB at most used", m.Peak, 64, false)
			}
		}
	}
}
