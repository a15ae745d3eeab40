// SPDX-License-Identifier: Apache-2.0

package page_test

import (
	"flag"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"muster.dev/muster/internal/aws/logsinsights"
	"muster.dev/muster/internal/aws/logsinsights/evaluation"
	"muster.dev/muster/internal/console/page"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/explain/diagnosis"
)

var update = flag.Bool("update", false, "rewrite golden files")

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; go test -update rewrites it):\n%s", path, diff)
	}
}

// Each page of a small installation.
func TestPages(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	f := pageservertest.World()
	refused, _ := view.NewMachinePage(f, pageservertest.Refused, pageservertest.RefusedReport())
	ready, _ := view.NewMachinePage(f, pageservertest.FirstOne, diagnosis.Report{Verdict: diagnosis.Healthy})
	for file, c := range map[string]struct {
		name string
		view any
	}{
		"overview.html": {page.Overview, view.NewOverview(f, "")}, "filtered.html": {page.Overview, view.NewOverview(f, "gpu")}, "empty.html": {page.Overview, view.NewOverview(view.Facts{At: f.At}, "")},
		"refused.html": {page.Machine, refused}, "ready.html": {page.Machine, ready},
		"logs.html": {page.Logs, view.NewLogs(f, view.LogForm{Since: "2h"}, nil, nil)}, "answer.html": {page.Logs, answer(t, f)},
		"mistake.html": {page.Logs, mistake(f)},
		"new.html":     {page.NewCluster, created(t, f, "")}, "new-wrong.html": {page.NewCluster, created(t, f, "request=t&groups=1&name=-&nodeGroups[0].minSize=x&nodeGroups[0].labels=a")},
		"new-group.html":    {page.NewCluster, created(t, f, "cluster=home")},
		"certificates.html": {page.Certificates, view.NewCertificates(f, "")}, "changes.html": {page.Changes, view.NewChanges(f)},
		"access.html": {page.Access, view.NewAccess(f, "")}, "access-filtered.html": {page.Access, view.NewAccess(f, "nobody has it")},
	} {
		t.Run(file, func(t *testing.T) {
			html, shown, err := pages.Part(page.Frame{Name: c.name, At: f.At, Token: "the-token", Flags: []string{"--state-dir=/srv/it's"}}, c.view)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, file, html)
			whole, err := pages.Whole(page.Frame{Name: c.name, At: f.At, Token: "the-token", Flags: []string{"--state-dir=/srv/it's"}}, c.view)
			if err != nil || !strings.Contains(string(whole), html) || !strings.Contains(string(whole), `data-shown="`+shown+`"`) || !strings.Contains(string(whole), `value="the-token"`) {
				t.Errorf("the whole page does not have its part: %v", err)
			}
		})
	}
}

// answer is the page of logs with rows and a chart.
func answer(t *testing.T, f view.Facts) view.Logs {
	t.Helper()
	form := view.LogForm{Cluster: "home", Since: "1h", Query: "stats count(*) as requests, max(n) by bin(30m) as t, verb"}
	query, err := logsinsights.Parse(form.Query)
	if err != nil {
		t.Fatal(err)
	}
	result, err := evaluation.Run(query, func(yield func(*evaluation.Event, error) bool) {
		for _, e := range pageservertest.Requests() {
			if !yield(e, nil) {
				return
			}
		}
	}, evaluation.Options{Now: f.At})
	if err != nil {
		t.Fatal(err)
	}
	a := &view.LogAnswer{Cluster: "home", LogGroup: "/aws/eks/home/cluster", LogTypes: []string{"audit"}, Start: f.At.Add(-time.Hour), End: f.At}
	a.SetResult(result, 6)
	return view.NewLogs(f, form, query, a)
}

// created is the form of a new cluster or node group with the values of an address.
func created(t *testing.T, f view.Facts, query string) view.Create {
	t.Helper()
	values, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	c, err := view.NewCreate(f, "us-east-1", values, "once")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// mistake is the page of logs with a query that cannot be read.
func mistake(f view.Facts) view.Logs {
	form := view.LogForm{Cluster: "home", Since: "1h", Start: "2026-11-20T11:00:00Z", Query: "fields @timestamp\n| filtre '$(reboot)'"}
	_, err := logsinsights.Parse(form.Query)
	shown := view.NewLogs(f, form, nil, nil)
	shown.Problem = view.NewMistake(form.Query, err)
	shown.Problem.Commands = []string{"muster status"}
	return shown
}

// A page that shows the same is the same, whenever it is made: otherwise each would be sent again each second.
func TestPagesStandStill(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	f := pageservertest.World()
	for name, made := range map[string]func() any{
		page.Overview: func() any { return view.NewOverview(f, "") }, page.Access: func() any { return view.NewAccess(f, "") },
	} {
		shown := map[string]bool{}
		for second := range 20 {
			f.At = pageservertest.Noon.Add(time.Duration(second) * time.Second)
			_, hash, err := pages.Part(page.Frame{Name: name, At: f.At}, made())
			if err != nil {
				t.Fatal(err)
			}
			shown[hash] = true
		}
		if len(shown) != 1 {
			t.Errorf("%s: %d different pages of the same facts", name, len(shown))
		}
	}
}

func TestAssets(t *testing.T) {
	pages, err := page.New()
	if err != nil {
		t.Fatal(err)
	}
	whole, err := pages.Whole(page.Frame{Name: page.Changes}, view.NewChanges(view.Facts{}))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"console.css", "console.js", "icon.svg"} {
		_, rest, ok := strings.Cut(string(whole), `"/assets/`)
		for ok && !strings.Contains(rest[:strings.IndexByte(rest, '"')], file) {
			_, rest, ok = strings.Cut(rest, `"/assets/`)
		}
		if !ok {
			t.Errorf("pages do not load %s", file)
			continue
		}
		asset, ok := pages.Asset("/assets/" + rest[:strings.IndexByte(rest, '"')])
		if !ok || len(asset.Data) == 0 || len(asset.Data) > 256<<10 {
			t.Errorf("%s has %d bytes", file, len(asset.Data))
		}
	}
	if _, ok := pages.Asset("/assets/0/console.css"); ok {
		t.Error("a file is served under a wrong hash")
	}
	if _, _, err := pages.Part(page.Frame{Name: "nothing"}, nil); err == nil {
		t.Error("a page that does not exist is made")
	}
}

func TestCommandsAreQuoted(t *testing.T) {
	f := page.Frame{Flags: []string{"--state-dir=/srv/it's"}}
	if got, want := f.Command("explain", "machine", "$(reboot)"), `muster explain machine "\$(reboot)" "--state-dir=/srv/it's"`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	f.Flags = append(f.Flags, "--cluster=home")
	for cluster, want := range map[string]string{"": `muster auth check "--state-dir=/srv/it's" --cluster=home`, "blue": `muster auth check --cluster=blue "--state-dir=/srv/it's"`} {
		if got := f.ClusterCommand(cluster, "auth", "check"); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
