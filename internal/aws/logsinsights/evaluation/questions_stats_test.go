// SPDX-License-Identifier: Apache-2.0

package evaluation_test

import (
	"math"
	"slices"
	"strconv"
)

// timed adds the beginning of the period that a line is in.
func timed(all []line, as string, milliseconds int64) []line {
	return change(all, func(l line) line { return l.with(as, clock(l.time()/milliseconds*milliseconds)) })
}

// aggregated is a question about a number of each verb's codes.
func aggregated(function string, find func(numbers []float64) float64) question {
	return question{"stats " + function + " as x by verb", func(all []line) []string {
		return show(tally(all, "x", func(lines []line) string {
			numbers := sorted(lines, "responseStatus.code")
			if len(numbers) == 0 {
				return ""
			}
			return format(find(numbers))
		}, "verb"), "verb", "x")
	}}
}

func sum(numbers []float64) float64 {
	total := 0.0
	for _, n := range numbers {
		total += n
	}
	return total
}

func distinct(all []line, name string) string {
	var seen []string
	for _, l := range all {
		if l.has(name) && !slices.Contains(seen, l[name]) {
			seen = append(seen, l[name])
		}
	}
	return strconv.Itoa(len(seen))
}

var statsQuestions = []question{
	{`stats count(*)`, func(all []line) []string { return []string{"count(*)=" + size(all)} }},
	{`stats count() as n by verb`, func(all []line) []string { return show(tally(all, "n", size, "verb"), "verb", "n") }},
	{`stats count(verb) as n`, func(all []line) []string { return []string{"n=" + size(audit(all))} }},
	{`stats count(*) as n by verb, objectRef.resource | sort n desc, verb, objectRef.resource | limit 12`, func(all []line) []string {
		return show(first(12, largest("n", tally(all, "n", size, "verb", "objectRef.resource"))), "verb", "objectRef.resource", "n")
	}},
	{`stats count_distinct(user.username) as users`, func(all []line) []string { return []string{"users=" + distinct(all, "user.username")} }},
	{`stats count_distinct(objectRef.resource) as kinds by user.username`, func(all []line) []string {
		return show(tally(all, "kinds", func(lines []line) string { return distinct(lines, "objectRef.resource") }, "user.username"), "user.username", "kinds")
	}},
	aggregated("sum(responseStatus.code)", sum),
	aggregated("avg(responseStatus.code)", func(n []float64) float64 { return sum(n) / float64(len(n)) }),
	aggregated("min(responseStatus.code)", func(n []float64) float64 { return n[0] }),
	aggregated("max(responseStatus.code)", func(n []float64) float64 { return n[len(n)-1] }),
	aggregated("max(responseStatus.code) - min(responseStatus.code)", func(n []float64) float64 { return n[len(n)-1] - n[0] }),
	aggregated("median(responseStatus.code)", func(n []float64) float64 { return n[(len(n)+1)/2-1] }),
	aggregated("pct(responseStatus.code, 90)", func(n []float64) float64 { return n[int(math.Ceil(float64(len(n))*0.9))-1] }),
	aggregated("pct(responseStatus.code, 0)", func(n []float64) float64 { return n[0] }),
	{`filter ispresent(verb) | stats sum(responseStatus.code >= 400) as refused by verb`, func(all []line) []string {
		return show(tally(audit(all), "refused", func(lines []line) string {
			return size(keep(lines, func(l line) bool { return l.number("responseStatus.code") >= 400 }))
		}, "verb"), "verb", "refused")
	}},
	{`filter ispresent(verb) | stats round(stddev(strlen(@message)), 6) as x`, func(all []line) []string {
		var lengths []float64
		for _, l := range audit(all) {
			lengths = append(lengths, float64(len([]rune(l["@message"]))))
		}
		mean, square := sum(lengths)/float64(len(lengths)), 0.0
		for _, n := range lengths {
			square += (n - mean) * (n - mean)
		}
		return []string{"x=" + format(math.Round(math.Sqrt(square/float64(len(lengths)))*1e6)/1e6)}
	}},
	{`stats count(*) as n by bin(1m) as t | sort t`, func(all []line) []string {
		return show(tally(timed(all, "t", 60_000), "n", size, "t"), "t", "n")
	}},
	{`stats count(*) by bin(1h)`, func(all []line) []string {
		return show(tally(timed(all, "bin(1h)", 3_600_000), "count(*)", size, "bin(1h)"), "bin(1h)", "count(*)")
	}},
	{`filter responseStatus.code >= 400 | stats count(*) as n by bin(1s), user.username`, func(all []line) []string {
		refused := keep(all, func(l line) bool { return l.number("responseStatus.code") >= 400 })
		return show(tally(timed(refused, "bin(1s)", 1000), "n", size, "bin(1s)", "user.username"), "bin(1s)", "user.username", "n")
	}},
	{`stats earliest(@message) as x by @logStream`, func(all []line) []string {
		return show(tally(all, "x", func(lines []line) string { return lines[len(lines)-1]["@message"] }, "@logStream"), "@logStream", "x")
	}},
	{`stats latest(verb) as x by user.username`, func(all []line) []string {
		return show(tally(all, "x", func(lines []line) string { return lines[0]["verb"] }, "user.username"), "user.username", "x")
	}},
	{`stats earliest(@timestamp) as from, latest(@timestamp) as to`, func(all []line) []string {
		return []string{"from=" + all[len(all)-1]["ms"] + " to=" + all[0]["ms"]}
	}},
	{`stats sortsFirst(verb) as a, sortsLast(verb) as z`, func([]line) []string { return []string{"a=create z=watch"} }},
	{`stats count(*) as n, sum(responseStatus.code) as s, s / count(responseStatus.code) as mean by verb | filter n > 10 | display verb, mean | sort verb`, func(all []line) []string {
		var shown []string
		for _, g := range groups(all, "verb") {
			if numbers := sorted(g.lines, "responseStatus.code"); len(g.lines) > 10 && len(numbers) > 0 {
				shown = append(shown, "verb="+g.key[0]+" mean="+format(sum(numbers)/float64(len(numbers))))
			} else if len(g.lines) > 10 {
				shown = append(shown, "")
			}
		}
		return shown
	}},
	{`stats count(*) as n by verb, user.username | stats max(n) as most, count(*) as users by verb | sort verb`, func(all []line) []string {
		perUser := tally(all, "n", size, "verb", "user.username")
		var shown []string
		for _, g := range groups(perUser, "verb") {
			numbers := sorted(g.lines, "n")
			row := line{"most": format(numbers[len(numbers)-1]), "users": size(g.lines)}
			if g.key[0] != "" {
				row["verb"] = g.key[0]
			}
			shown = append(shown, show([]line{row}, "verb", "most", "users")...)
		}
		return shown
	}},
	{`filter verb = "nonsense" | stats count(*)`, func([]line) []string { return []string{} }},
}

var rowQuestions = []question{
	{`limit 3`, func(all []line) []string { return show(first(3, all), "@timestamp", "@message") }},
	{`fields verb | limit 7`, func(all []line) []string { return show(first(7, all), "verb") }},
	{`fields @timestamp, verb | sort @timestamp asc | limit 5`, func(all []line) []string { return show(first(5, oldest(all)), "@timestamp", "verb") }},
	{`fields @ingestionTime as i, @log | sort @timestamp asc | limit 2`, func(all []line) []string {
		return show(change(first(2, oldest(all)), func(l line) line { return l.with("i", l["@ingestionTime"]) }), "i", "@log")
	}},
	{`sort responseStatus.code desc | limit 12 | display responseStatus.code, verb`, func(all []line) []string {
		return show(first(12, largest("responseStatus.code", all)), "responseStatus.code", "verb")
	}},
	{`sort responseStatus.code desc, @timestamp asc | limit 12 | display responseStatus.code, auditID`, func(all []line) []string {
		return show(first(12, largest("responseStatus.code", oldest(all))), "responseStatus.code", "auditID")
	}},
	{`sort @timestamp asc | sort responseStatus.code desc | limit 12 | display responseStatus.code, auditID`, func(all []line) []string {
		return show(first(12, largest("responseStatus.code", oldest(all))), "responseStatus.code", "auditID")
	}},
	{`limit 20 | filter verb = "patch" | fields auditID`, func(all []line) []string {
		return show(keep(first(20, all), func(l line) bool { return l["verb"] == "patch" }), "auditID")
	}},
	{`limit 20 | sort @timestamp asc | limit 3 | display @timestamp`, func(all []line) []string {
		return show(first(3, oldest(first(20, all))), "@timestamp")
	}},
	{`filter ispresent(verb) | display verb, auditID | dedup verb`, func(all []line) []string {
		seen := map[string]bool{}
		return show(keep(audit(all), func(l line) bool {
			fresh := !seen[l["verb"]]
			seen[l["verb"]] = true
			return fresh
		}), "verb", "auditID")
	}},
	{`fields verb, auditID | sort @timestamp asc | dedup verb | limit 4`, func(all []line) []string {
		seen := map[string]bool{}
		return show(first(4, keep(oldest(all), func(l line) bool {
			fresh := !l.has("verb") || !seen[l["verb"]]
			seen[l["verb"]] = true
			return fresh
		})), "verb", "auditID")
	}},
	{`display verb | display auditID | limit 4`, func(all []line) []string { return show(first(4, all), "auditID") }},
	{`where verb = "watch" # and nothing else` + "\n| fields auditID", func(all []line) []string {
		return show(keep(all, func(l line) bool { return l["verb"] == "watch" }), "auditID")
	}},
}
