// SPDX-License-Identifier: Apache-2.0

package auditlog

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
)

// recorded is a line of an API server, with what differs.
func recorded(t *testing.T, fields map[string]any) []byte {
	t.Helper()
	all := map[string]any{
		"kind": "Event", "apiVersion": "audit.k8s.io/v1", "level": "Metadata", "auditID": "a", "stage": "ResponseComplete", "verb": "get",
		"stageTimestamp": "2026-11-24T12:00:00.000001Z", "responseStatus": map[string]any{"code": 200},
	}
	maps.Copy(all, fields)
	raw, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func ref(group, resource, subresource string) map[string]any {
	r := map[string]any{"resource": resource}
	if group != "" {
		r["apiGroup"] = group
	}
	if subresource != "" {
		r["subresource"] = subresource
	}
	return r
}

func TestKept(t *testing.T) {
	code := func(n int) map[string]any { return map[string]any{"code": n} }
	for name, tc := range map[string]struct {
		fields map[string]any
		want   bool
	}{
		"a Secret is read":            {map[string]any{"objectRef": ref("", "secrets", "")}, true},
		"Secrets are watched":         {map[string]any{"objectRef": ref("", "secrets", ""), "verb": "watch", "stage": "ResponseStarted"}, true},
		"a Secret is made":            {map[string]any{"objectRef": ref("", "secrets", ""), "verb": "create"}, true},
		"exec":                        {map[string]any{"objectRef": ref("", "pods", "exec")}, true},
		"attach":                      {map[string]any{"objectRef": ref("", "pods", "attach")}, true},
		"port-forward":                {map[string]any{"objectRef": ref("", "pods", "portforward")}, true},
		"proxy to a pod":              {map[string]any{"objectRef": ref("", "pods", "proxy")}, true},
		"proxy to a Service":          {map[string]any{"objectRef": ref("", "services", "proxy")}, true},
		"proxy to a node":             {map[string]any{"objectRef": ref("", "nodes", "proxy")}, true},
		"an ephemeral container":      {map[string]any{"objectRef": ref("", "pods", "ephemeralcontainers"), "verb": "patch"}, true},
		"a service account's token":   {map[string]any{"objectRef": ref("", "serviceaccounts", "token"), "verb": "create"}, true},
		"impersonation":               {map[string]any{"objectRef": ref("", "pods", ""), "impersonatedUser": map[string]any{"username": "eve"}}, true},
		"nobody":                      {map[string]any{"responseStatus": code(401)}, true},
		"refused":                     {map[string]any{"objectRef": ref("apps", "deployments", ""), "responseStatus": code(403)}, true},
		"refused, no object":          {map[string]any{"requestURI": "/metrics", "responseStatus": code(403)}, true},
		"a CSR is made":               {map[string]any{"objectRef": ref("certificates.k8s.io", "certificatesigningrequests", ""), "verb": "create"}, true},
		"a CSR is approved":           {map[string]any{"objectRef": ref("certificates.k8s.io", "certificatesigningrequests", "approval"), "verb": "update"}, true},
		"CSRs are watched":            {map[string]any{"objectRef": ref("certificates.k8s.io", "certificatesigningrequests", ""), "verb": "watch"}, false},
		"RBAC is changed":             {map[string]any{"objectRef": ref("rbac.authorization.k8s.io", "roles", ""), "verb": "patch"}, true},
		"RBAC is read":                {map[string]any{"objectRef": ref("rbac.authorization.k8s.io", "roles", "")}, false},
		"a pod is read":               {map[string]any{"objectRef": ref("", "pods", "")}, false},
		"a pod's log is read":         {map[string]any{"objectRef": ref("", "pods", "log")}, false},
		"not found":                   {map[string]any{"objectRef": ref("", "pods", ""), "responseStatus": code(404)}, false},
		"somebody else's secrets":     {map[string]any{"objectRef": ref("example.com", "secrets", "")}, false},
		"a name that looks like code": {map[string]any{"objectRef": ref("", "pods", ""), "requestURI": `/"code":403`}, false},
		"no event":                    {map[string]any{"kind": "Gap", "responseStatus": code(403)}, false},
	} {
		line := recorded(t, tc.fields)
		got, ok := kept(line)
		if ok != tc.want || ok && string(got) != string(line) {
			t.Errorf("%s: kept %t: %s", name, ok, got)
		}
	}
}

// A requester chooses what makes a line long. The fields that matter stay.
func TestKeptLongLines(t *testing.T) {
	long := strings.Repeat("<é", 1<<20)
	for name, fields := range map[string]map[string]any{
		"objects":    {"level": "RequestResponse", "verb": "create", "requestObject": map[string]any{"x": long}, "responseObject": map[string]any{"x": long}},
		"URI":        {"requestURI": "/api?" + long, "responseStatus": map[string]any{"code": 403, "message": long}},
		"user agent": {"userAgent": long},
		"many":       {"impersonatedUser": map[string]any{"groups": strings.Split(strings.Repeat("group,", 50_000), ",")}},
	} {
		fields["objectRef"] = ref("certificates.k8s.io", "certificatesigningrequests", "")
		if fields["verb"] == nil {
			fields["verb"] = "delete"
		}
		got, ok := kept(recorded(t, fields))
		if !ok || len(got) > longLine || strings.Contains(string(got), "\n") || strings.Contains(string(got), "Object\":") {
			t.Errorf("%s: kept %t, %d bytes", name, ok, len(got))
			continue
		}
		var e struct {
			event
			Level       string            `json:"level"`
			Annotations map[string]string `json:"annotations"`
		}
		if err := json.Unmarshal(got, &e); err != nil || e.AuditID != "a" || e.Reached.IsZero() || e.ObjectRef.Resource == "" || e.Level != "Metadata" || e.Annotations[annotationTruncated] != "true" {
			t.Errorf("%s: %v: %.200s", name, err, got)
		}
	}
}

// BenchmarkKept is what a line costs the service: one that is kept, and one of an everyday request.
func BenchmarkKept(b *testing.B) {
	for name, line := range map[string][]byte{"kept": []byte(secretRead(1)), "passed over": []byte(podRead(1))} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				kept(line)
			}
		})
	}
}
