// SPDX-License-Identifier: Apache-2.0

package view

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"muster.dev/muster/internal/certificates/csrview"
	"muster.dev/muster/internal/explain/diagnosis"
)

// Certificates is the page of certificates: every certificate signing request with the outcome of each rule, when
// certificates end, and those of the control planes.
type Certificates struct {
	At       time.Time `json:"at"`
	Filter   string    `json:"filter,omitempty"`
	Requests []Request `json:"requests"`
	// More is how many requests the list leaves out.
	More int `json:"more,omitempty"`
	// Calendar counts certificates by the time that they have left.
	Calendar []Bucket `json:"calendar"`
	// Planes are the certificates of authorities and components, and Nodes is the number of certificates of nodes and people.
	Planes []Certificate      `json:"planes"`
	Nodes  int                `json:"nodes"`
	Unseen []diagnosis.Unseen `json:"unseen,omitempty"`
}

// Request is a certificate signing request of a cluster.
type Request struct {
	Cluster string         `json:"cluster"`
	Review  csrview.Review `json:"review"`
}

// Bucket is how many certificates end within a time.
type Bucket struct {
	Name string `json:"name"`
	// Nodes and Planes are the numbers of certificates: of nodes and people, and of control planes.
	Nodes  int `json:"nodes"`
	Planes int `json:"planes"`
	// Late reports whether certificates in it should have been renewed.
	Late bool `json:"late,omitempty"`
}

// mostRequests is how many requests the page lists.
const mostRequests = 200

const day = 24 * time.Hour

// border is the end of one of the calendar's buckets.
type border struct {
	name   string
	within time.Duration
}

// borders are the ends of all buckets, in order. The last one has no end.
func borders() []border {
	return []border{
		{"over", 0},
		{"1 hour", time.Hour},
		{"6 hours", 6 * time.Hour},
		{"1 day", day},
		{"1 week", 7 * day},
		{"30 days", 30 * day},
		{"90 days", 90 * day},
		{"1 year", 366 * day},
		{"later", math.MaxInt64},
	}
}

// NewCertificates makes the page. The filter chooses requests by a text in their name, requester, subject, state, rule or
// reason.
func NewCertificates(f Facts, filter string) Certificates {
	page := Certificates{At: f.At, Filter: filter, Requests: []Request{}, Planes: []Certificate{}, Unseen: f.Wrong.Unseen}
	wanted := strings.ToLower(strings.TrimSpace(filter))
	for _, b := range borders() {
		page.Calendar = append(page.Calendar, Bucket{Name: b.name, Late: b.within == 0})
	}
	for _, cluster := range slices.Sorted(maps.Keys(f.Of)) {
		of := f.Of[cluster]
		for _, r := range of.Reviews {
			if about(r, wanted) {
				page.Requests = append(page.Requests, Request{cluster, r})
			}
		}
		for _, c := range of.Certificates {
			n := slices.IndexFunc(borders(), func(b border) bool { return c.NotAfter.Sub(f.At) <= b.within })
			if c.Request == "" {
				page.Calendar[n].Planes++
				page.Planes = append(page.Planes, c)
			} else {
				page.Calendar[n].Nodes++
				page.Nodes++
			}
		}
	}
	slices.SortStableFunc(page.Requests, func(a, b Request) int {
		return cmp.Or(b.Review.Created.Compare(a.Review.Created), strings.Compare(a.Review.Name, b.Review.Name))
	})
	if len(page.Requests) > mostRequests {
		page.Requests, page.More = page.Requests[:mostRequests], len(page.Requests)-mostRequests
	}
	slices.SortStableFunc(page.Planes, func(a, b Certificate) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), sooner(b.Authority, a.Authority), strings.Compare(a.Owner, b.Owner))
	})
	return page
}

// sooner sorts true before false if it is called with the second value first.
func sooner(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// about reports whether a request has a text, which is in small letters.
func about(r csrview.Review, wanted string) bool {
	return wanted == "" || slices.ContainsFunc(
		[]string{r.Name, r.SignerName, r.Requester.Username, r.Asked.CommonName, string(r.State), string(r.Verdict), string(r.Rule), r.Why},
		func(text string) bool { return strings.Contains(strings.ToLower(text), wanted) })
}

// Spent is how much of a certificate's life is over, in thousandths from 0 to 1000.
func (c Certificate) Spent(at time.Time) int {
	life := c.NotAfter.Sub(c.NotBefore)
	if life <= 0 || !at.Before(c.NotAfter) {
		return 1000
	}
	return int(max(0, at.Sub(c.NotBefore).Seconds()/life.Seconds()) * 1000)
}
