// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// writeAims says for each thing that muster's authenticator is meant to reach whether it did.
func (r *report) writeAims(p *printer) {
	header := false
	aim := func(system, what string, got, want float64, atLeast bool) {
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
		p.printf("  %-7s %s: %s %.4g, %s %.4g\n", word, system, what, got, sign, want)
	}
	for _, of := range r.rows() {
		for _, m := range r.medians(of) {
			switch {
			case of.part == partVerify && of.callers > 1:
				switch m.System {
				case "remote":
					aim(m.System, "verified per second, asking STS", m.Rate, 24_000, true)
				case "own":
					aim(m.System, "verified per second, asking the account", m.Rate, 5_000, true)
				case "warm":
					aim(m.System, "decided per second, seen before", m.Rate, 300_000, true)
				}
			case of.part == partFlood && m.Heap > 0:
				aim(m.System, "MiB of heap gained by "+of.load, m.Heap-m.Before, flatMiB, false)
			case of.part == partFlood && m.Lag == 0 && of.load == loadPaced:
				aim(m.System, "p99 ms of good tokens meanwhile", m.P99, 5, false)
			case of.part == partReview && m.System != "shipped" && m.System != "pool" && strings.Contains(of.load, "token"):
				aim(m.System, "p99 ms, "+of.load, m.P99, 5, false)
				aim(m.System, "good tokens refused, "+of.load, m.Refused, 0, false)
			}
		}
	}
}
