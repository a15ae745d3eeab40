// SPDX-License-Identifier: Apache-2.0

package insightfacts

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/cluster/insight"
	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
)

// Who asked is told by the audit log, and metrics add what the log has not.
func TestRequests(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)
	hour, month := now.Add(-time.Hour), now.Add(-deprecationlog.Window)
	api := func(resource string, n int64) deprecation.API {
		return deprecation.API{Group: "g", Version: "v1", Resource: resource, Removed: "1.40", Requests: n}
	}
	logged := deprecationlog.Seen{Since: month, Asked: []deprecationlog.Asked{{API: api("a", 3), Clients: []deprecationlog.Client{{UserAgent: "old", Requests: 3, Last: hour}}}}}
	a := insight.Request{Path: "/apis/g/v1/a", Removed: "1.40", Count: 3, Clients: []insight.Client{{UserAgent: "old", Requests: 3, Last: hour}}}
	away := errors.New("away")
	for name, c := range map[string]struct {
		running    deprecation.Seen
		callers    deprecationlog.Seen
		err, wrong error
		want       insight.Requests
	}{
		"both": {
			running: deprecation.Seen{Since: hour, APIs: []deprecation.API{api("a", 9), api("b", 2)}}, callers: logged,
			want: insight.Requests{Since: month, APIs: []insight.Request{a, {Path: "/apis/g/v1/b", Removed: "1.40", Count: 2}}},
		},
		"the log alone":    {running: deprecation.Seen{Since: hour, APIs: []deprecation.API{api("b", 2)}}, err: away, callers: logged, want: insight.Requests{Since: month, APIs: []insight.Request{a}}},
		"an old server":    {running: deprecation.Seen{Since: month.Add(-1), APIs: []deprecation.API{api("b", 2)}}, callers: logged, want: insight.Requests{Since: month, APIs: []insight.Request{a}}},
		"the server alone": {running: deprecation.Seen{Since: month.Add(-1), APIs: []deprecation.API{api("a", 9)}}, callers: logged, wrong: away, want: insight.Requests{Since: month.Add(-1), APIs: []insight.Request{{Path: "/apis/g/v1/a", Removed: "1.40", Count: 9}}}},
		"a new log":        {running: deprecation.Seen{Since: hour}, callers: deprecationlog.Seen{Since: now}, want: insight.Requests{Since: hour}},
	} {
		got, err := Sources{
			Now:        now,
			Deprecated: func(context.Context) (deprecation.Seen, error) { return c.running, c.err },
			Callers:    func(context.Context) (deprecationlog.Seen, error) { return c.callers, c.wrong },
		}.requests(t.Context())
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
	}
}
