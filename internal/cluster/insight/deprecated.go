// SPDX-License-Identifier: Apache-2.0

package insight

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"muster.dev/muster/internal/platform/release"
)

// deprecated returns insights about deprecated APIs that were requested: an insight for the next minor version, an
// insight for each other version that removes some of the APIs, and an insight for the APIs that no release removes
// yet.
func deprecated(f Facts) []Insight {
	is, known := minorNumber(f.Server)
	if f.Requests.Unknown != "" || !known {
		unseen := removedIn(cmp.Or(release.Minor(f.Server), "unknown"), nil, time.Time{})
		return []Insight{unseen.unknown(cmp.Or(f.Requests.Unknown, "The API server's audit log and metrics cannot be read"))}
	}
	byMinor := map[string][]Request{fmt.Sprintf("1.%d", is+1): nil}
	for _, request := range f.Requests.Is.APIs {
		byMinor[request.Removed] = append(byMinor[request.Removed], request)
	}
	var all []Insight
	for minor, requests := range byMinor {
		one := removedIn(minor, requests, f.Requests.Is.Since)
		if removes, ok := minorNumber(minor); ok && removes <= is+1 && len(requests) > 0 {
			one.Status = Error
		}
		for n := range one.Resources {
			one.Resources[n].Status = one.Status
		}
		if minor == "" {
			one.Minor = release.Minor(f.Server)
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b Insight) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// removedIn is the insight about a minor that removes APIs, or about APIs that no minor removes yet.
func removedIn(minor string, requests []Request, since time.Time) Insight {
	i := Insight{
		Finding:        Finding{Passing, "No such API was requested since " + since.UTC().Format(time.RFC3339)},
		Name:           "Deprecated APIs removed in Kubernetes v" + minor,
		Category:       UpgradeReadiness,
		Minor:          minor,
		Description:    "Looks for requests to APIs that Kubernetes v" + minor + " does not serve any more",
		Recommendation: "Have clients ask for the version that replaces the API before the cluster is upgraded; kubectl prints a warning with its name",
		Deprecations:   []Deprecation{},
	}
	if minor == "" {
		i.Name, i.Description = "Deprecated APIs", "Looks for requests to deprecated APIs that no release of Kubernetes removes yet"
	}
	count := int64(0)
	for _, request := range requests {
		count += request.Count
		i.Deprecations = append(i.Deprecations, Deprecation{request.Path, request.Removed, request.Clients})
		i.Resources = append(i.Resources, Resource{Finding{Warning, request.said()}, request.Path})
	}
	if len(requests) > 0 {
		i.Finding = Finding{Warning, fmt.Sprintf("%d requests to %d such APIs since %s", count, len(requests), since.UTC().Format(time.RFC3339))}
	}
	return i
}

// said is how often an API was asked for, and by whom most.
func (r Request) said() string {
	said := fmt.Sprintf("%d requests", r.Count)
	if len(r.Clients) == 0 {
		return said
	}
	most := r.Clients[0]
	if said += fmt.Sprintf(", %d of them by %q, last at %s", most.Requests, most.UserAgent, most.Last.UTC().Format(time.RFC3339)); len(r.Clients) > 1 {
		said += fmt.Sprintf(", and by %d other clients", len(r.Clients)-1)
	}
	return said
}
