// SPDX-License-Identifier: Apache-2.0

package deprecation

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const started = "# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1.8e+09\n"

// The fixture is from a kube-apiserver v1.36, which kubectl get componentstatuses had asked.
func TestRead(t *testing.T) {
	file, err := os.Open("testdata/apiserver.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	seen, err := Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if seen.Since.Year() < 2026 {
		t.Errorf("it started at %v", seen.Since)
	}
	found := false
	for _, api := range seen.APIs {
		if api.Path() == "/api/v1/componentstatuses" {
			found = true
			if api.Requests < 1 || api.Removed != "" {
				t.Errorf("%+v", api)
			}
		}
	}
	if !found {
		t.Errorf("%+v", seen.APIs)
	}
}

// The requests of two API servers are one sum, and neither knows of those before its start.
func TestMerge(t *testing.T) {
	t.Parallel()
	early, late := time.Unix(1000, 0), time.Unix(2000, 0)
	flows, status := API{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3", Resource: "flowschemas", Removed: "1.32"}, API{Version: "v1", Resource: "componentstatuses"}
	of := func(api API, requests int64) API {
		api.Requests = requests
		return api
	}
	got := Merge(Seen{Since: late, APIs: []API{of(flows, 2)}}, Seen{Since: early, APIs: []API{of(flows, 5), of(status, 1)}})
	if diff := cmp.Diff(Seen{Since: late, APIs: []API{of(status, 1), of(flows, 7)}}, got); diff != "" {
		t.Errorf("merged (-want +got):\n%s", diff)
	}
	if got := Merge(Seen{Since: early}); !got.Since.Equal(early) || got.APIs != nil {
		t.Errorf("%+v", got)
	}
}

func TestReadText(t *testing.T) {
	t.Parallel()
	const uses = `# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="g.io",removed_release="1.38",resource="things",subresource="status",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="old",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="never",subresource="",version="v1"} 0
# TYPE apiserver_request_total counter
apiserver_request_total{code="200",group="g.io",resource="things",subresource="status",verb="GET",version="v1beta1"} 2
apiserver_request_total{code="404",group="g.io",resource="things",subresource="status",verb="LIST",version="v1beta1"} 3
apiserver_request_total{code="200",group="g.io",resource="things",subresource="",verb="GET",version="v1beta1"} 7
# TYPE apiserver_request_total_of_another counter
apiserver_request_total_of_another{code="200"} not read
`
	for name, c := range map[string]struct {
		text, fails string
		want        Seen
	}{
		"none": {text: started, want: Seen{Since: time.Unix(1800000000, 0).UTC()}},
		"some": {text: started + uses, want: Seen{Since: time.Unix(1800000000, 0).UTC(), APIs: []API{
			{Version: "v1", Resource: "old"},
			{Group: "g.io", Version: "v1beta1", Resource: "things", Subresource: "status", Removed: "1.38", Requests: 5},
		}}},
		"no start":  {text: uses, fails: "do not say when it started"},
		"no time":   {text: strings.Replace(started, "1.8e+09", "NaN", 1), fails: "is not a time"},
		"no metric": {text: "process_start_time_seconds x\n", fails: "reading the API server's metrics"},
		"a line":    {text: strings.Repeat("x", maxLine+1), fails: "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Read(strings.NewReader(c.text))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) {
					t.Errorf("got %+v, %v, want %s", got, err, c.fails)
				}
				return
			}
			if diff := cmp.Diff(c.want, got); err != nil || diff != "" {
				t.Errorf("%v (-want +got):\n%s", err, diff)
			}
		})
	}
	if got := (API{Group: "g.io", Version: "v1beta1", Resource: "things", Subresource: "status"}).Path(); got != "/apis/g.io/v1beta1/things/status" {
		t.Error(got)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(started)
	f.Add("apiserver_requested_deprecated_apis{group=\"\",version=\"v1\"} 1\n" + started)
	f.Fuzz(func(t *testing.T, text string) {
		seen, err := Read(strings.NewReader(text))
		if err != nil && len(seen.APIs) > 0 {
			t.Error("a failure that tells of APIs")
		}
		for _, api := range seen.APIs {
			if api.Requests < 0 {
				t.Errorf("%+v", api)
			}
		}
	})
}
