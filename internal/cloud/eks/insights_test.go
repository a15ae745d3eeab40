// SPDX-License-Identifier: Apache-2.0

package eks

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"muster.dev/muster/internal/plane/deprecation"
	"muster.dev/muster/internal/plane/deprecation/deprecationlog"
)

func TestInsights(t *testing.T) {
	const path = "/clusters/Blue_1/insights"
	w := newWorld(t, nil)
	w.ask("POST", path, `{}`, 404, "No cluster found for name: Blue_1.")
	w.ask("POST", "/clusters", makeOne, 200)
	w.ask("POST", path, `{}`, 200, `"status":"UNKNOWN"`)
	w.served("Blue_1")
	node := func(name, kubelet string) {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.NodeInfo.KubeletVersion = kubelet
		if err := w.cluster.Create(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	node("same", "v1.36.3")
	answer := w.ask("POST", path, `{}`, 200, `"name":"Kubelet version skew"`, `"category":"UPGRADE_READINESS"`, `"kubernetesVersion":"1.36"`, `"status":"PASSING"`)
	var out struct{ Insights []struct{ ID, Name string } }
	if err := json.Unmarshal([]byte(answer), &out); err != nil {
		t.Fatal(answer, err)
	}
	skew := ""
	for _, i := range out.Insights {
		if i.Name == "Kubelet version skew" {
			skew = i.ID
		}
	}
	one := path + "/" + skew
	w.ask("GET", one, "", 200, `"resources":[]`, `"recommendation":`)
	node("old", "v1.34.9")
	w.ask("GET", one, "", 200, `"status":"WARNING"`, `"kubernetesResourceUri":"/api/v1/nodes/old"`)
	node("strange", "x")
	w.ask("GET", one, "", 200, `"status":"WARNING"`, `"status":"UNKNOWN"`)
	node("new", "v1.37.0")
	node("older", "v1.33.0")
	w.ask("GET", one, "", 200, `"status":"ERROR"`, "is newer than the API server", "would be too old", `"4 of 5 kubelets`)
	w.ask("POST", path, `{"filter":{"statuses":["PASSING"],"kubernetesVersions":["1.36"]}}`, 200, `{"insights":[]}`)
	w.ask("POST", path, `{"filter":{"categories":["ROLLBACK_READINESS"]}}`, 200, `{"insights":[]}`)
	w.back = "1.35"
	w.ask("POST", path, `{"filter":{"categories":["ROLLBACK_READINESS"],"statuses":["ERROR"]}}`, 200, `"name":"Kubelet version skew"`, `"category":"ROLLBACK_READINESS"`)
	w.ask("POST", path, `{"filter":{"statuses":["ERROR"],"categories":["UPGRADE_READINESS"],"kubernetesVersions":["1.36"]}}`, 200, skew)
	w.ask("GET", path+"/none", "", 404, "No insight found for id: none.")

	const refresh = "/clusters/Blue_1/insights-refresh"
	w.ask("GET", refresh, "", 404, "No insights refresh found")
	w.ask("POST", refresh, "{}", 200, `"status":"COMPLETED"`)
	w.ask("GET", refresh, "", 200, `"status":"COMPLETED"`, `"startedAt":`, `"endedAt":`)
	w.gate.Denies = true
	for _, c := range [][2]string{{"POST", path}, {"GET", one}, {"POST", refresh}, {"GET", refresh}} {
		w.ask(c[0], c[1], map[string]string{"POST": "{}"}[c[0]], 403, "AccessDeniedException")
	}
	away := newWorld(t, func(c *Config) { c.Cluster = func(string) (client.Client, error) { return nil, errors.New("away") } })
	away.ask("POST", "/clusters", makeOne, 200)
	away.served("Blue_1")
	away.ask("POST", path, `{}`, 200, `"status":"UNKNOWN"`, "not reached")
}

func TestDeprecatedAPIs(t *testing.T) {
	const path = "/clusters/Blue_1/insights"
	w := newWorld(t, nil)
	w.ask("POST", "/clusters", makeOne, 200)
	w.ask("POST", path, `{}`, 200, `"name":"Deprecated APIs removed in Kubernetes vunknown"`, "audit log and metrics cannot be read")
	w.served("Blue_1")
	w.deprecated.Since = time.Unix(1800000000, 0).UTC()
	type listed struct {
		ID, Name, KubernetesVersion string
		InsightStatus               struct{ Status, Reason string }
	}
	list := func(filter string) []listed {
		var out struct{ Insights []listed }
		if err := json.Unmarshal([]byte(w.ask("POST", path, filter, 200)), &out); err != nil {
			t.Fatal(err)
		}
		slices.SortFunc(out.Insights, func(a, b listed) int { return strings.Compare(a.Name, b.Name) })
		return slices.DeleteFunc(out.Insights, func(i listed) bool { return !strings.HasPrefix(i.Name, "Deprecated") })
	}
	if all := list(`{}`); len(all) != 1 || all[0].Name != "Deprecated APIs removed in Kubernetes v1.37" || all[0].KubernetesVersion != "1.37" || all[0].InsightStatus.Status != "PASSING" {
		t.Errorf("%+v", all)
	}
	w.deprecated.APIs = []deprecation.API{
		{Version: "v1", Resource: "componentstatuses", Requests: 2},
		{Group: "g.io", Version: "v1beta1", Resource: "a", Removed: "1.37", Requests: 3},
		{Group: "g.io", Version: "v1beta1", Resource: "b", Removed: "1.37", Requests: 1},
		{Group: "g.io", Version: "v1beta2", Resource: "c", Removed: "1.40", Requests: 1},
		{Group: "h.io", Version: "v1alpha1", Resource: "d", Removed: "1.36", Requests: 1},
	}
	got := ""
	for _, i := range list(`{}`) {
		got += i.Name + "=" + i.InsightStatus.Status + ";"
		if i.KubernetesVersion == "" {
			t.Errorf("%+v", i)
		}
	}
	if got != "Deprecated APIs=WARNING;Deprecated APIs removed in Kubernetes v1.36=ERROR;Deprecated APIs removed in Kubernetes v1.37=ERROR;Deprecated APIs removed in Kubernetes v1.40=WARNING;" {
		t.Error(got)
	}
	one := list(`{"filter":{"kubernetesVersions":["1.37"]}}`)
	if len(one) != 1 {
		t.Fatalf("%+v", one)
	}
	w.ask("GET", path+"/"+one[0].ID, "", 200, "4 requests to 2 such APIs since 2027-01-15T08:00:00Z", `"recommendation":`,
		`"categorySpecificSummary":{"deprecationDetails":[{"usage":"/apis/g.io/v1beta1/a","stopServingVersion":"1.37"},{"usage":"/apis/g.io/v1beta1/b","stopServingVersion":"1.37"}]`)
	at := time.Unix(1800000000, 0).UTC()
	w.callers = deprecationlog.Seen{Since: at, Asked: []deprecationlog.Asked{{
		API:     deprecation.API{Group: "g.io", Version: "v1beta1", Resource: "a", Removed: "1.37", Requests: 7},
		Clients: []deprecationlog.Client{{UserAgent: "kubectl/v1.30.0", Requests: 5, Last: at}, {UserAgent: "old", Requests: 2, Last: at}},
	}}}
	w.ask("GET", path+"/"+one[0].ID, "", 200, "8 requests to 2 such APIs", `7 requests, 5 of them by \"kubectl/v1.30.0\", last at 2027-01-15T08:00:00Z, and by 1 other clients`,
		`"clientStats":[{"userAgent":"kubectl/v1.30.0","numberOfRequestsLast30Days":5,"lastRequestTime":1800000000},{"userAgent":"old","numberOfRequestsLast30Days":2,"lastRequestTime":1800000000}]`)
}
