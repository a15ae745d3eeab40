// SPDX-License-Identifier: Apache-2.0

package pageserver_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"muster.dev/muster/internal/console/pageserver/pageservertest"
)

// harm is what an element of a page could do that no page of the console does; empty for nothing.
func harm(n *html.Node) string {
	allowed := map[string]string{"script": "/assets/", "link": "/assets/", "a": "/", "form": "/"}
	switch n.Data {
	case "img", "iframe", "object", "embed", "base", "style", "video", "audio", "template", "foreignobject", "animate", "set", "use", "math":
		return "an element " + n.Data
	case "script":
		if n.FirstChild != nil {
			return "a script of the page's own: " + n.FirstChild.Data
		}
	}
	for _, a := range n.Attr {
		switch {
		case strings.HasPrefix(a.Key, "on"), a.Key == "style", a.Key == "srcdoc", a.Key == "formaction", strings.ContainsAny(a.Key, "\"'<"):
			return "an attribute " + a.Key
		case a.Key == "href" || a.Key == "src" || a.Key == "action":
			if prefix := allowed[n.Data]; prefix == "" || !strings.HasPrefix(a.Val, prefix) && a.Val != "#main" || strings.HasPrefix(a.Val, "//") {
				return "the address " + a.Val
			}
		}
	}
	return ""
}

// check looks at all elements of a page.
func check(t *testing.T, what, page string) {
	t.Helper()
	root, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	scripts := 0
	for n := range root.Descendants() {
		if n.Type != html.ElementNode {
			continue
		}
		if n.Data == "script" {
			scripts++
		}
		if problem := harm(n); problem != "" {
			t.Errorf("%s: <%s> has %s", what, n.Data, problem)
		}
	}
	if scripts > 1 {
		t.Errorf("%s has %d scripts", what, scripts)
	}
	for name, text := range map[string]string{"a turned direction": "\u202e", "an escape": "\x1b", "a secret": "hunter2"} {
		if strings.Contains(page, text) {
			t.Errorf("%s has %s", what, name)
		}
	}
}

// Whatever machines and users write is text on every page, of the stream of events too.
func TestHostileTexts(t *testing.T) {
	b := newBench(t, pageservertest.Hostile()).enter()
	evil := "/machines/" + url.PathEscape(pageservertest.Evil)
	for _, path := range []string{"/", "/?q=" + url.QueryEscape(pageservertest.Evil), "/certificates", "/certificates?q=" + url.QueryEscape(pageservertest.Evil[:40]), "/access", "/access?q=" + url.QueryEscape(pageservertest.Evil[:40]), "/changes", evil, "/machines/" + url.PathEscape("javascript:window.harmed=1")} {
		w := b.ask(http.MethodGet, path)
		if w.Code != http.StatusOK {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
		check(t, path, w.Body.String())
		if !strings.Contains(w.Body.String(), "window.harmed") && !strings.Contains(path, "q=") {
			t.Errorf("%s does not show the hostile text", path)
		}
	}
	for _, path := range []string{"/machines/" + url.PathEscape(pageservertest.Evil+"x"), "/enter/" + url.PathEscape(pageservertest.Evil), "/" + url.PathEscape(pageservertest.Evil)} {
		check(t, path, b.ask(http.MethodGet, path).Body.String())
	}
	for _, path := range []string{"/api/overview", "/api/explain", "/api/access", "/api/machines/" + url.PathEscape(pageservertest.Evil), "/api/machines/none" + url.PathEscape(pageservertest.Evil)} {
		w := b.ask(http.MethodGet, path)
		if !json.Valid(w.Body.Bytes()) || w.Header().Get("Content-Type") != "application/json" || strings.Contains(w.Body.String(), "<script") || strings.Contains(w.Body.String(), "hunter2") {
			t.Errorf("%s: %s", path, w.Body)
		}
	}
}
