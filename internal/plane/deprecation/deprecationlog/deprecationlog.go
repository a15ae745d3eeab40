// SPDX-License-Identifier: Apache-2.0

// Package deprecationlog counts who asked a cluster for deprecated APIs, and how often, over 30 days.
//
// The source is the audit log. The metric apiserver_requested_deprecated_apis does not name clients, and ends with its API
// server: a rollout, an upgrade and each restart empty it. The audit log names the user agent of each request, is a file
// that is there after all of these, and does not have the control plane's own requests, which nobody can mend. Reading it
// again costs little: lines are in the page cache, and only lines with the mark of a deprecated API are decoded.
//
// What happens if
//
//	the service dies, or restarts                 counts and how far the logs were read are one file, written in one step: each request counts once
//	an API server is replaced                     each has a log of its own, and all are read
//	the API server rotates its log meanwhile      its older parts are read, in their order
//	it rotates away what was not read             these requests are not counted, and Since is when reading began anew
//	the clock was ahead                           requests that were forgotten then are gone, and Since is now until the clock is as far again, or a request comes
//	the clock is behind, as at a boot             what is known stays, also once the clock is right again
//	clients have very many names                  clients beyond the bounds are counted together, as [Others]
//	the disk is full, or the file cannot be read  it is said once, and counting goes on in a while with what the file says
//	the file is damaged                           it is begun anew, and Since says so
package deprecationlog

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/plane/auditlog"
	"muster.dev/muster/internal/plane/deprecation"
)

const (
	// keptDays is how long requests are counted, as EKS counts them.
	keptDays = 30
	// Window is the same as a duration.
	Window = keptDays * 24 * time.Hour
	// mostClients is how many clients one API may have, and mostCounts how many counts there may be in all.
	mostClients = 100
	mostCounts  = 2000
	// longestName is how much is kept of the name of a client.
	longestName = 256
)

// Others stands for the clients beyond the bounds.
const Others = "other clients"

// Client asked for an API.
type Client struct {
	UserAgent string
	Requests  int64
	Last      time.Time
}

// Asked is a deprecated API that was asked for, and by whom: the most frequent clients come first.
type Asked struct {
	API     deprecation.API
	Clients []Client
}

// Seen is what was asked for since a moment, which is 30 days ago at most.
type Seen struct {
	Since time.Time
	Asked []Asked
}

// day counts the requests of one day, as the number of days since 1970.
type day struct {
	Day      int64 `json:"day"`
	Requests int64 `json:"requests"`
}

// count is how often a client asked for an API.
type count struct {
	Group       string    `json:"group,omitempty"`
	Version     string    `json:"version"`
	Resource    string    `json:"resource"`
	Subresource string    `json:"subresource,omitempty"`
	Removed     string    `json:"removed,omitempty"`
	UserAgent   string    `json:"userAgent,omitempty"`
	Days        []day     `json:"days"`
	Last        time.Time `json:"last"`
}

func (c *count) api() deprecation.API {
	return deprecation.API{Group: c.Group, Version: c.Version, Resource: c.Resource, Subresource: c.Subresource, Removed: c.Removed}
}

// counts are what the file has.
type counts struct {
	Since time.Time `json:"since"`
	// Read is how far each log was read.
	Read   map[string]auditlog.Position `json:"read"`
	Counts []*count                     `json:"counts"`
}

const daySeconds = 24 * 60 * 60

func dayOf(t time.Time) int64 { return t.Unix() / daySeconds }

// firstDay is the first day of which requests are counted.
func firstDay(now time.Time) int64 { return dayOf(now) - keptDays + 1 }

// add counts a request, unless that is too old.
func (c *counts) add(r auditlog.DeprecatedRequest, now time.Time) bool {
	today := min(dayOf(r.At), dayOf(now)) // a clock that was ahead
	if today < firstDay(now) {
		return false
	}
	wanted := &count{Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource, Removed: r.Removed, UserAgent: shorten(r.UserAgent)}
	into := c.find(wanted)
	if into == nil && c.full(wanted.api()) {
		wanted.UserAgent = Others
		if into = c.find(wanted); into == nil && len(c.Counts) >= 2*mostCounts {
			return false // so many APIs do not exist
		}
	}
	if into == nil {
		into = wanted
		c.Counts = append(c.Counts, into)
	}
	if r.At.Before(c.Since) {
		c.Since = r.At // the log reaches back to before it was first read
	}
	if r.At.After(into.Last) {
		into.Last = r.At
	}
	if i := slices.IndexFunc(into.Days, func(d day) bool { return d.Day == today }); i >= 0 {
		into.Days[i].Requests++
		return true
	}
	into.Days = append(into.Days, day{today, 1})
	return true
}

func shorten(name string) string {
	if len(name) > longestName {
		name = name[:longestName]
	}
	return strings.ToValidUTF8(name, "")
}

func (c *counts) find(wanted *count) *count {
	i := slices.IndexFunc(c.Counts, func(is *count) bool {
		return is.Resource == wanted.Resource && is.UserAgent == wanted.UserAgent && is.api() == wanted.api()
	})
	if i < 0 {
		return nil
	}
	return c.Counts[i]
}

// full reports whether another client of an API is counted with others.
func (c *counts) full(api deprecation.API) bool {
	n := 0
	for _, is := range c.Counts {
		if is.Resource == api.Resource && is.api() == api {
			n++
		}
	}
	return n >= mostClients || len(c.Counts) >= mostCounts
}

// forget removes what is older than 30 days, and reports whether there was something. Since comes after what is forgotten,
// also if that was because the clock was ahead.
func (c *counts) forget(now time.Time) (changed bool) {
	for _, is := range c.Counts {
		before := len(is.Days)
		is.Days = slices.DeleteFunc(is.Days, func(d day) bool { return d.Day < firstDay(now) })
		changed = changed || len(is.Days) != before
	}
	c.Counts = slices.DeleteFunc(c.Counts, func(is *count) bool { return len(is.Days) == 0 })
	if begin := time.Unix(firstDay(now)*daySeconds, 0).UTC(); c.Since.Before(begin) {
		c.Since = begin
	}
	return changed
}

// seen is what the counts say.
func (c *counts) seen(now time.Time) Seen {
	seen := Seen{Since: c.Since}
	if seen.Since.After(now) {
		seen.Since = now.UTC()
	}
	by := map[deprecation.API]*Asked{}
	for _, is := range c.Counts {
		requests := int64(0)
		for _, d := range is.Days {
			requests += d.Requests
		}
		one := by[is.api()]
		if one == nil {
			one = &Asked{API: is.api()}
			by[is.api()] = one
		}
		one.API.Requests += requests
		one.Clients = append(one.Clients, Client{is.UserAgent, requests, is.Last})
	}
	for _, one := range by {
		slices.SortFunc(one.Clients, func(a, b Client) int {
			return cmp.Or(cmp.Compare(b.Requests, a.Requests), cmp.Compare(a.UserAgent, b.UserAgent))
		})
		seen.Asked = append(seen.Asked, *one)
	}
	slices.SortFunc(seen.Asked, func(a, b Asked) int {
		return cmp.Or(cmp.Compare(a.API.Path(), b.API.Path()), cmp.Compare(a.API.Removed, b.API.Removed))
	})
	return seen
}

// clone is a copy that others do not change.
func (c *counts) clone() *counts {
	all := &counts{Since: c.Since, Read: maps.Clone(c.Read)}
	for _, is := range c.Counts {
		one := *is
		one.Days = slices.Clone(is.Days)
		all.Counts = append(all.Counts, &one)
	}
	return all
}
