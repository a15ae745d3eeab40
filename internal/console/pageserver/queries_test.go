// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/plane/logquery"
)

// asking is a path with a query about logs.
func asking(path, query string, more ...string) string {
	values := url.Values{"cluster": {"home"}, "q": {query}}
	for i := 0; i < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	return path + "?" + values.Encode()
}

// kept is a bench whose log store has events.
func kept(t *testing.T, events []*evaluation.Event) *bench {
	t.Helper()
	source := pageservertest.NewSource(pageservertest.World())
	source.Kept = events
	return newBenchOf(t, source).enter()
}

// The answer as JSON, with the rows as muster logs query -o json has them.
func TestQueryAsJSON(t *testing.T) {
	b := kept(t, pageservertest.Requests())
	for _, c := range []struct {
		path string
		want string
	}{
		{asking("/api/logs/query", "filter verb = 'get' | display @timestamp, verb, absent | sort @timestamp desc", "limit", "1"), `{
  "cluster": "home",
  "logGroup": "/aws/eks/home/cluster",
  "logTypes": [
    "api",
    "audit"
  ],
  "start": "2026-11-20T11:00:00Z",
  "end": "2026-11-20T12:00:00Z",
  "columns": [
    "@timestamp",
    "verb",
    "absent"
  ],
  "rows": [
    {
      "@ptr": "f00d-00000000000000000057",
      "@timestamp": "2026-11-20 11:58:00.000",
      "verb": "get"
    }
  ],
  "more": true,
  "matched": 20,
  "scanned": 60,
  "bytes": 3470
}
`},
		{asking("/api/logs/query", "filter verb = 'none'\r\n| display n", "start", "2026-11-20T11:59:00Z", "end", "2026-11-20T12:00:00Z"), `{
  "cluster": "home",
  "logGroup": "/aws/eks/home/cluster",
  "logTypes": [
    "api",
    "audit"
  ],
  "start": "2026-11-20T11:59:00Z",
  "end": "2026-11-20T12:00:00Z",
  "columns": [
    "n"
  ],
  "rows": [],
  "more": false,
  "matched": 0,
  "scanned": 2,
  "bytes": 117
}
`},
	} {
		w := b.ask(http.MethodGet, c.path)
		if diff := cmp.Diff(c.want, w.Body.String()); w.Code != http.StatusOK || w.Header().Get("Content-Type") != "application/json" || diff != "" {
			t.Errorf("%s: %d (-want +got)\n%s", c.path, w.Code, diff)
		}
	}
}

// Why there is no answer, as JSON and on the page, which keeps the form.
func TestQueriesWithoutAnAnswer(t *testing.T) {
	b := kept(t, nil)
	for _, c := range []struct {
		query  string
		more   []string
		unkept error
		status int
		json   string
		page   string
	}{
		{"fields a\r\n| filtre b", nil, nil, 400, `{"error":"unexpected symbol found filtre at line 2 and position 3","line":2,"position":3,"start":11,"end":17}`, "| filtre b\n  ^"},
		{"limit 1", []string{"since", "soon"}, nil, 400, `{"error":"invalid since \"soon\": must be a time ago such as 10m"}`, "a time ago such as 10m"},
		{"limit 1", []string{"since", "-1h"}, nil, 400, `{"error":"invalid since -1h0m0s: must be a time ago such as 10m"}`, "a time ago such as 10m"},
		{"limit 1", []string{"start", "noon"}, nil, 400, `{"error":"invalid start \"noon\": must be of the form 2026-11-20T12:00:00Z"}`, "must be of the form"},
		{"limit 1", []string{"end", "2026-11-20T12:00:00Z"}, nil, 400, `{"error":"end goes with start"}`, "end goes with start"},
		{"limit 1", []string{"cluster", "blue"}, nil, 404, `{"error":"there is no cluster \"blue\": not found"}`, "there is no cluster"},
		{"limit 1", nil, &evaluation.LimitError{What: "groups", Limit: 10, Fix: "use a filter"}, 400, `{"error":"query needs too much memory: more groups than the limit of 10: use a filter"}`, "use a filter"},
		{"limit 1", nil, errors.New("the log store ended"), 503, `{"error":"the log store ended"}`, "the log store ended"},
		{"limit 1", nil, &logquery.NoStoreError{Cluster: "home", Kept: true}, 503, `{"error":"the log store does not run: muster status says whether the account runs, and what keeps logs from being kept; muster up starts it","commands":["muster status \"--state-dir=/srv/it's\"","muster up \"--state-dir=/srv/it's\""]}`, "muster up &#34;--state-dir=/srv/it&#39;s&#34;"},
		{"limit 1", nil, &logquery.NoStoreError{Cluster: "home"}, 503, `{"error":"no logs are kept yet, so there is no log store: build it by ` + "`make logs`" + `, and switch log types on by aws eks update-cluster-config --name home --logging '{\"clusterLogging\":[{\"types\":[\"api\",\"audit\"],\"enabled\":true}]}'","commands":["make logs","aws eks update-cluster-config --name home --logging '{\"clusterLogging\":[{\"types\":[\"api\",\"audit\"],\"enabled\":true}]}'"]}`, `data-copy="make logs"`},
	} {
		b.source.Unkept = c.unkept
		w := b.ask(http.MethodGet, asking("/api/logs/query", c.query, c.more...))
		var got, want any
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil {
			t.Error(err)
		}
		if err := json.Unmarshal([]byte(c.json), &want); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); w.Code != c.status || diff != "" {
			t.Errorf("%s %q: %d, want %d (-want +got)\n%s", c.query, c.more, w.Code, c.status, diff)
		}
		w = b.ask(http.MethodGet, asking("/logs", c.query, c.more...))
		if body := w.Body.String(); w.Code != c.status || !strings.Contains(body, c.page) || !strings.Contains(body, "\n"+strings.ReplaceAll(c.query, "\r", "")+"</textarea>") {
			t.Errorf("the page of %s %q: %d without %q\n%s", c.query, c.more, w.Code, c.page, body)
		}
	}
	for _, limit := range []string{"0", "10001", "many"} {
		if w := b.ask(http.MethodGet, asking("/api/logs/query", "limit 1", "limit", limit)); w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), "from 1 to 10000") {
			t.Errorf("limit %s: %d %s", limit, w.Code, w.Body)
		}
	}
	if w := b.ask(http.MethodGet, "/api/logs/query"); w.Code != http.StatusBadRequest {
		t.Errorf("without a query: %d %s", w.Code, w.Body)
	}
}

// Whatever events say is text, and has no secrets, on the page and as JSON.
func TestHostileRows(t *testing.T) {
	b := kept(t, pageservertest.HostileRequests())
	for _, query := range []string{
		"fields @message, @logStream, verb, requestObject.password", "stats count(*) as `a\"><script>` by bin(5m), verb", "fields @message | filter '" + strings.ReplaceAll(pageservertest.Evil, "'", "") + "' = 1", pageservertest.Evil,
	} {
		w := b.ask(http.MethodGet, asking("/logs", query))
		check(t, query, w.Body.String())
		if !strings.Contains(w.Body.String(), "window.harmed") {
			t.Errorf("%s: the page lacks the hostile text", query)
		}
		w = b.ask(http.MethodGet, asking("/api/logs/query", query))
		if !json.Valid(w.Body.Bytes()) || strings.Contains(w.Body.String(), "<script") || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: %s", query, w.Body)
		}
	}
	for _, path := range []string{asking("/logs", "limit 1", "cluster", pageservertest.Evil, "since", pageservertest.Evil), asking("/logs", "", "cluster", pageservertest.Evil, "start", pageservertest.Evil, "end", pageservertest.Evil)} {
		check(t, path, b.ask(http.MethodGet, path).Body.String())
	}
}

// asked begins a query of the bench's session.
func (b *bench) asked(ctx context.Context) chan *httptest.ResponseRecorder {
	b.t.Helper()
	r := httptest.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+asking("/api/logs/query", "limit 1"), nil)
	r.AddCookie(b.cookie)
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		w := httptest.NewRecorder()
		b.http.ServeHTTP(w, r)
		answered <- w
	}()
	synctest.Wait()
	return answered
}

// running fails if not so many queries run.
func (b *bench) running(want int) {
	b.t.Helper()
	synctest.Wait()
	if now := b.source.Asking(); now != want {
		b.t.Errorf("%d queries run, want %d", now, want)
	}
}

// A session has one query at a time, and all have two. A query ends with its request and after its time, and another has its turn then.
func TestQueriesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := kept(t, pageservertest.Requests())
		b.source.Hold = make(chan struct{})
		ctx, leave := context.WithCancel(t.Context())
		first, second, third := b.asked(t.Context()), b.asked(ctx), b.asked(t.Context())
		b.running(1)
		b.source.Hold <- struct{}{}
		if w := <-first; w.Code != http.StatusOK {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		leave()
		<-second
		b.running(1)
		b.source.Hold <- struct{}{}
		if w := <-third; w.Code != http.StatusOK {
			t.Errorf("after a request that was left: %d %s", w.Code, w.Body)
		}
		for range 3 {
			b.cookie = nil
			b.enter().asked(t.Context())
		}
		b.running(2)
		b.source.Hold <- struct{}{}
		b.running(2)
	})
}

func TestQueriesEndAfterTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := kept(t, nil)
		b.source.Hold = make(chan struct{})
		first, second := b.asked(t.Context()), b.asked(t.Context())
		for _, answered := range []chan *httptest.ResponseRecorder{first, second} {
			if w := <-answered; w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "took longer than 25s") {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
}

// The page asks the log store where the rest of the installation cannot be read. Nothing keeps the page current.
func TestQueriesOfASilentInstallation(t *testing.T) {
	never := pageservertest.NewSource(view.Facts{})
	never.Set(view.Facts{}, errors.New("the management plane is not running"))
	b := newBenchOf(t, never).enter()
	w := b.ask(http.MethodGet, "/logs")
	if body := w.Body.String(); w.Code != http.StatusOK || !strings.Contains(body, "that of the only cluster") || !strings.Contains(body, `data-view=""`) {
		t.Errorf("%d %s", w.Code, body)
	}
	if w := b.ask(http.MethodGet, "/events?view="+url.QueryEscape("/logs?q=limit 1")); w.Code == http.StatusOK {
		t.Errorf("a stream of the page: %d", w.Code)
	}
}
