// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"muster.dev/muster/internal/console/blueprint"
	"muster.dev/muster/internal/console/pageserver/pageservertest"
	"muster.dev/muster/internal/console/view"
	"muster.dev/muster/internal/iam/viewer"
)

// pages are all pages, by the names of their pictures.
func pages() map[string]string {
	return map[string]string{
		"overview": "/", "certificates": "/certificates", "access": "/access", "access-filtered": "/access?q=alice", "changes": "/changes", "machine-refused": "/machines/" + pageservertest.Refused, "machine-ready": "/machines/" + pageservertest.FirstOne,
		"machine-joining": "/machines/" + pageservertest.Joining, "filtered": "/?q=gpu",
		"logs": "/logs", "logs-chart": logs("stats count(*) as requests, max(n) by bin(5m), verb"), "logs-rows": logs("fields @timestamp, verb, @message"), "logs-mistake": logs("fields verb\n| filtre verb = 'get'"),
		"logs-none": logs("filter verb = 'none'"),
		"new":       "/new", "new-group": "/new?cluster=home", "new-wrong": "/new?request=t&groups=1&name=-", "new-filled": filled(),
	}
}

// filled is the form of a new cluster with two node groups.
func filled() string {
	values := blueprint.Filled("", "once", []string{pageservertest.SubnetA, pageservertest.SubnetB})
	for name, value := range map[string]string{
		"name": "blue", "roleArn": pageservertest.ClusterRole, "groups": "2", "nodeGroups[1].name": "batch", "nodeGroups[1].instanceTypes": "t3.small, t3.medium", "nodeGroups[1].maxSize": "8",
		"nodeGroups[1].diskSize": "40", "nodeGroups[1].labels": "pool=batch",
	} {
		values.Set(name, value)
	}
	return "/new?" + values.Encode()
}

// logs is the page with the answer of a query about the events of pageservertest.Requests.
func logs(query string) string {
	return "/logs?" + url.Values{"cluster": {"home"}, "start": {"2026-11-20T11:00:00Z"}, "end": {"2026-11-20T12:00:00Z"}, "q": {query}}.Encode()
}

// ready waits until a page is current, or is one that nothing keeps current.
func (s *site) ready() {
	s.t.Helper()
	s.until(`document.querySelector(".live.on, #ask, #new") !== null`)
}

// axe is the library that looks for barriers (npm: axe-core), which make console-test fetches.
func axe(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile(os.Getenv("MUSTER_AXE"))
	if err != nil {
		t.Fatalf("reading axe-core, which MUSTER_AXE names: %v (make console-test fetches it)", err)
	}
	return string(raw)
}

// barriers are the violations that axe finds on a page, in lines.
const barriers = `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations.flatMap(v => v.nodes.map(n => v.id + ": " + n.html.slice(0, 200) + " " + n.failureSummary.slice(0, 300))))`

// wider are the elements that are wider than a window, without what scrolls by itself.
const wider = `[...document.querySelectorAll("body *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, .command, .unseen-text, .skip")).map(e => e.outerHTML.slice(0, 120))`

func TestPagesWithoutBarriers(t *testing.T) {
	library := axe(t)
	s := open(t, pageservertest.World(), "I1120 12:00:00.000001 1 kubelet.go:1] a line", "E1120 12:00:01.000001 1 kubelet.go:2] another")
	s.source.Kept = pageservertest.Requests()
	for _, window := range shapes() {
		for name, path := range pages() {
			s.be(window)
			s.do(chromedp.Navigate(s.address+path), chromedp.WaitVisible("main h1", chromedp.ByQuery))
			s.ready()
			s.do(chromedp.Evaluate(`document.querySelectorAll("details").forEach(d => { d.open = true })`, nil))
			s.shoot(name + "-" + window.name)
			if found := value[[]string](s, wider); len(found) > 0 {
				t.Errorf("%s, %s is wider than the window: %q", name, window.name, found)
			}
			s.do(chromedp.Evaluate(library, nil)) // by the debugger, which the page's policy does not bind
			for _, barrier := range value[[]string](s, barriers) {
				t.Errorf("%s, %s: %s", name, window.name, barrier)
			}
			s.quiet()
		}
	}
}

// Texts of machines and users do nothing in a browser.
func TestHostileTextsDoNothing(t *testing.T) {
	s := open(t, pageservertest.Hostile(), pageservertest.EvilLine)
	s.source.Kept = pageservertest.HostileRequests()
	for _, path := range []string{"/", "/certificates", "/access", "/changes", "/machines/" + url.PathEscape(pageservertest.Evil), "/?q=" + url.QueryEscape(pageservertest.Evil), logs("fields @message, @logStream, verb"), logs("stats count(*) by bin(5m), verb"), logs(pageservertest.Evil), "/new?" + url.Values{"request": {pageservertest.Evil}, "groups": {"1"}, "name": {pageservertest.Evil}, "nodeGroups[0].labels": {pageservertest.Evil}, "nodeGroups[0].name": {pageservertest.Evil}}.Encode()} {
		s.do(chromedp.Navigate(s.address + path))
		s.ready()
		if strings.HasPrefix(path, "/machines/") {
			s.until(`document.querySelector("#logs div") !== null`)
		}
		if value[bool](s, `window.harmed !== undefined || document.querySelector("main img, main script, main iframe") !== null`) {
			t.Errorf("%s: a text did something", path)
		}
		s.quiet()
	}
	s.shoot("hostile")
}

// A page is current without being loaded again, and what is open, focused and typed stays.
func TestPageStaysCurrent(t *testing.T) {
	s := open(t, pageservertest.World())
	s.until(`document.querySelector(".live.on") !== null`)
	s.do(chromedp.Evaluate(`window.same = true; document.querySelector("details").open = true; document.getElementById("`+pageservertest.FirstOne+`").focus()`, nil))
	before := value[float64](s, `document.querySelector(".map").getBoundingClientRect().top`)
	f := pageservertest.World()
	f.Machines[1].Status.Phase = "Stopped"
	f.Groups[0].Status.ReadyReplicas = 11
	s.source.Set(f, nil)
	s.until(`document.querySelectorAll(".map .m.idle").length === 2`)
	const kept = `[window.same, document.querySelector("details").open, document.activeElement.id].join()`
	if got := value[string](s, kept); got != "true,true,"+pageservertest.FirstOne {
		t.Errorf("whether it is the same page, what is open and what has the focus: %s", got)
	}
	if after := value[float64](s, `document.querySelector(".map").getBoundingClientRect().top`); after != before {
		t.Errorf("the map moved from %v to %v", before, after)
	}
	if err := s.end(); err != nil {
		t.Error(err)
	}
	s.until(`document.querySelector(".live.off") !== null`)
	s.quiet()
}

func TestKeys(t *testing.T) {
	s := open(t, pageservertest.World())
	s.until(`document.querySelector(".live.on") !== null`)
	s.do(chromedp.KeyEvent("/"))
	s.until(`document.activeElement.id === "filter"`)
	s.do(chromedp.Evaluate(`document.activeElement.value = ""`, nil), chromedp.KeyEvent("gpu")) // the driver types the slash whatever the page says
	s.until(`document.querySelectorAll(".map .m").length === 3 && location.search === "?q=gpu"`)
	s.do(chromedp.KeyEvent(kb.Escape), chromedp.KeyEvent("k"))
	s.until(`document.activeElement.matches(".map .m")`)
	s.do(chromedp.KeyEvent(kb.Enter))
	s.until(`location.pathname.startsWith("/machines/i-0000000000000000") && document.querySelector(".live.on") !== null`)
	s.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("c"))
	s.until(`location.pathname === "/certificates" && document.querySelector(".live.on") !== null`)
	s.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("a"))
	s.until(`location.pathname === "/access" && document.querySelector(".live.on") !== null`)
	s.do(chromedp.KeyEvent("j"))
	s.until(`document.activeElement.matches("#grants-part summary")`)
	s.do(chromedp.KeyEvent(kb.Enter))
	s.until(`document.activeElement.parentElement.open`)
	s.do(chromedp.KeyEvent("?"))
	s.until(`document.getElementById("help").open`)
	s.do(chromedp.KeyEvent(kb.Escape))
	s.until(`!document.getElementById("help").open`)
	s.quiet()
}

// A query is typed and run by keys, a mistake in it is selected, and its command is copied by a key.
func TestQueryByKeys(t *testing.T) {
	s := open(t, pageservertest.World())
	s.source.Kept = pageservertest.Requests()
	s.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("l"))
	s.until(`location.pathname === "/logs" && document.querySelector("#ask") !== null`)
	s.do(chromedp.SetValue("#start", "2026-11-20T11:00:00Z", chromedp.ByQuery), chromedp.SetValue("#end", "2026-11-20T12:00:00Z", chromedp.ByQuery))
	s.do(chromedp.KeyEvent("/"))
	s.until(`document.activeElement.id === "query"`)
	s.do(chromedp.Evaluate(`document.activeElement.value = "filter verb = '😀'\n| filtre n"`, nil))
	const run = `document.activeElement.dispatchEvent(new KeyboardEvent("keydown", {key: "Enter", ctrlKey: true, bubbles: true, cancelable: true}))`
	s.do(chromedp.Evaluate(run, nil))
	s.until(`document.querySelector(".pointed") !== null && getSelection().toString() === "filtre"`)
	s.do(chromedp.Evaluate(`document.activeElement.value = "filter n < 5\n| display n"`, nil), chromedp.Evaluate(run, nil))
	s.until(`document.querySelectorAll(".rows tbody tr").length === 5 && new URL(location).searchParams.get("q").replace("\r", "") === "filter n < 5\n| display n"`)
	if got := value[string](s, `(() => { const since = document.getElementById("since"); const was = since.value; since.value = "3h"; since.dispatchEvent(new Event("change")); return was + document.getElementById("start").value; })()`); got != "" {
		t.Errorf("with a start, the time is %q", got)
	}
	s.do(chromedp.Evaluate(`document.activeElement.blur()`, nil), chromedp.KeyEvent("j"))
	s.until(`document.activeElement.matches(".rows tr")`)
	if got := value[string](s, `document.querySelector("#same .copy").dataset.copy`); got != "muster logs query --cluster=home --start=2026-11-20T11:00:00Z --end=2026-11-20T12:00:00Z \"filter n < 5\n| display n\"" {
		t.Errorf("the command is %s", got)
	}
	s.quiet()
}

// The texts of a new cluster follow what is typed, without a move of the focus, are copied, and what they say is made.
func TestNewCluster(t *testing.T) {
	s := open(t, pageservertest.World())
	s.do(chromedp.KeyEvent("g"), chromedp.KeyEvent("n"))
	s.until(`location.pathname === "/new" && document.querySelector("#new") !== null`)
	s.do(chromedp.SendKeys("#name", "-", chromedp.ByQuery))
	s.until(`document.querySelector("#name-note .wrong-field") !== null && document.querySelectorAll("#texts pre").length === 0 && document.activeElement.id === "name"`)
	s.do(chromedp.SendKeys("#name", kb.Backspace+"blue", chromedp.ByQuery))
	s.until(`document.querySelector("#name-note .wrong-field") === null && document.querySelector("#text-manifest pre")?.textContent.includes("name: blue") && new URL(location).searchParams.get("name") === "blue"`)
	s.do(chromedp.Click("button[name=groups]", chromedp.ByQuery))
	s.until(`document.querySelector("#group-1") !== null && document.querySelector("#name").value === "blue"`)
	s.do(chromedp.SendKeys("#nodeGroups-1-name", "batch", chromedp.ByQuery), chromedp.SendKeys("#nodeGroups-1-instanceTypes", "t3.small", chromedp.ByQuery),
		chromedp.SendKeys("#nodeGroups-1-maxSize", "3", chromedp.ByQuery), chromedp.SendKeys("#nodeGroups-1-diskSize", "20", chromedp.ByQuery))
	s.until(`document.querySelector("#text-aws .copy")?.dataset.copy.includes("--nodegroup-name batch")`)
	s.source.Waits = true
	s.do(chromedp.Click("#create", chromedp.ByQuery))
	s.until(`document.querySelector("#outcome .wait") !== null`)
	s.shoot("new-waiting")
	s.source.Done()
	s.until(`document.querySelector("#outcome") !== null && document.querySelector("#outcome .wait") === null`)
	if plans := s.source.Made(); len(plans) < 2 || plans[0].Token == "" || plans[0].Token != plans[1].Token || len(plans[0].Groups) != 2 || plans[0].Name != "blue" {
		t.Errorf("made: %+v", plans)
	}
	s.quiet()
}

// An IAM identity signs in by a form without barriers, sees what it may, and is named.
func TestSignInByIAM(t *testing.T) {
	library := axe(t)
	s := open(t, pageservertest.World())
	s.source.Viewers = map[string]viewer.Viewer{"k8s-aws-v1.bert": {ARN: "arn:aws:iam::000000000000:user/bert"}}
	s.source.May = map[string]view.Rights{"arn:aws:iam::000000000000:user/bert": {Of: map[string]view.ClusterRights{"home": {Describe: true}}}}
	s.do(chromedp.Click("footer form button", chromedp.ByQuery))
	s.until(`document.querySelector("h1").textContent === "Signed out"`)
	for _, window := range shapes() {
		s.be(window)
		s.do(chromedp.Navigate(s.address+"/sign-in"), chromedp.SendKeys("#proof", "k8s-aws-v1.other", chromedp.ByQuery), chromedp.Click(".sign-in button", chromedp.ByQuery))
		s.until(`document.querySelector("#proof-why") !== null`)
		s.shoot("sign-in-" + window.name)
		if found := value[[]string](s, wider); len(found) > 0 {
			t.Errorf("%s is wider than the window: %q", window.name, found)
		}
		s.do(chromedp.Evaluate(library, nil))
		for _, barrier := range value[[]string](s, barriers) {
			t.Errorf("%s: %s", window.name, barrier)
		}
	}
	s.do(chromedp.SendKeys("#proof", "k8s-aws-v1.bert", chromedp.ByQuery), chromedp.Click(".sign-in button", chromedp.ByQuery))
	s.until(`document.querySelector("footer b")?.textContent.endsWith("user/bert") && document.querySelectorAll(".map .m").length === 0 && document.querySelector(".cluster h2")?.textContent === "home"`)
	s.shoot("viewer")
	s.quiet()
}

// A person who signs out sees nothing more.
func TestSigningOut(t *testing.T) {
	s := open(t, pageservertest.World())
	s.do(chromedp.Click("footer form button", chromedp.ByQuery))
	s.until(`document.querySelector("h1").textContent === "Signed out"`)
	s.do(chromedp.Navigate(s.address + "/"))
	s.until(`document.querySelector("h1").textContent === "No session"`)
	s.shoot("no-session")
}

// A thousand machines are there at once, and a change of one takes no longer than a frame may.
func TestThousandMachines(t *testing.T) {
	s := open(t, pageservertest.Many(1000))
	s.be(shapes()[0])
	const navigation = `performance.getEntriesByType("navigation")[0]`
	var views []string
	for range 5 {
		s.do(chromedp.Navigate(s.address + "/"))
		s.until(`document.querySelector(".live.on") !== null && document.querySelectorAll(".map .m").length === 1000`)
		views = append(views, fmt.Sprintf("%.0f ms until the answer is whole, %.0f ms until the first paint", value[float64](s, navigation+".responseEnd"), value[float64](s, `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? -1`)))
	}
	t.Log(views)
	s.shoot("thousand")
	s.do(chromedp.Evaluate(`window.long = []; new PerformanceObserver(l => window.long.push(...l.getEntries().map(e => e.duration))).observe({type: "longtask"})`, nil))
	f := pageservertest.Many(1000)
	f.Machines[500].Status.Phase = "Stopped"
	s.source.Set(f, nil)
	s.until(`document.querySelectorAll(".map .m.idle").length === 1`)
	<-time.After(500 * time.Millisecond) // for tasks that come behind the change
	t.Logf("tasks of more than 50 ms: %v", value[[]float64](s, `window.long`))
	s.quiet()
}
