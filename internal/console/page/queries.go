// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster.dev/muster/internal/console/view"
)

// choice is one entry of a list that people choose from.
type choice struct{ Value, Name string }

// sinces are the ranges of time that people choose from, with the one that is chosen.
func sinces(chosen string) []choice {
	all := []choice{
		{"15m", "last 15 minutes"}, {"1h", "last hour"}, {"3h", "last 3 hours"}, {"12h", "last 12 hours"}, {"24h", "last 24 hours"}, {"72h", "last 3 days"}, {"168h", "last week"}, {"720h", "last 30 days"},
	}
	if !slices.ContainsFunc(all, func(c choice) bool { return c.Value == chosen }) {
		all = append(all, choice{chosen, "last " + chosen})
	}
	return all
}

// example is a query to begin with, as a link.
type example struct{ Name, Query, Address string }

// examples are links to the queries to begin with, about a cluster.
func examples(cluster string) []example {
	var all []example
	for _, e := range view.LogExamples() {
		query := url.Values{"cluster": {cluster}, "since": {e.Since}, "q": {e.Query}}
		all = append(all, example{e.Name, e.Query, "/logs?" + query.Encode()})
	}
	return all
}

// QueryCommand is the command line that asks the same as a form.
func (d document) QueryCommand(form view.LogForm) string {
	words := []string{"logs", "query"}
	flags := d.Flags
	if form.Cluster != "" {
		words = append(words, "--cluster="+form.Cluster)
		flags = slices.DeleteFunc(slices.Clone(flags), func(flag string) bool { return strings.HasPrefix(flag, "--cluster=") })
	}
	switch {
	case form.Start == "":
		words = append(words, "--since="+form.Since)
	case form.End == "":
		words = append(words, "--start="+form.Start)
	default:
		words = append(words, "--start="+form.Start, "--end="+form.End)
	}
	return Frame{Flags: flags}.Command(append(words, form.Query)...)
}

// rfc is a moment as queries have it.
func rfc(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// number is a number in as few digits as say it.
func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// thousands is a number with a thin blank between thousands.
func thousands(n int) string {
	digits := strconv.Itoa(n)
	for at := len(digits) - 3; at > 0; at -= 3 {
		digits = digits[:at] + string(thinBlank) + digits[at:]
	}
	return digits
}
