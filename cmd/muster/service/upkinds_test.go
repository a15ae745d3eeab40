// SPDX-License-Identifier: Apache-2.0

package service

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"muster.dev/muster/api/v1alpha1"
	"muster.dev/muster/api/v1alpha1/crds"
)

// slowPlane shows one kind more at each question, after it has failed for once.
type slowPlane struct {
	discovery.ServerResourcesInterface
	asked, most int
}

func (p *slowPlane) ServerGroupsAndResources() ([]*metav1.APIGroup, []*metav1.APIResourceList, error) {
	if p.asked++; p.asked == 1 {
		return nil, nil, errors.New("not yet")
	}
	definitions, err := crds.All()
	if err != nil {
		return nil, nil, err
	}
	list := &metav1.APIResourceList{GroupVersion: v1alpha1.GroupVersion.String()}
	for _, d := range definitions[:min(p.asked-2, p.most, len(definitions))] {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: d.Spec.Names.Plural, Kind: d.Spec.Names.Kind})
	}
	return nil, []*metav1.APIResourceList{{GroupVersion: "v1", APIResources: []metav1.APIResource{{Kind: "NodeGroup"}, {Kind: "Machine"}, {Kind: "Cluster"}}}, list}, nil
}

func TestUpWaitsUntilEveryKindIsShown(t *testing.T) {
	definitions, err := crds.All()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		p := &slowPlane{most: len(definitions)}
		started := time.Now()
		if err := kindsShown(t.Context(), p, time.Minute, time.Second); err != nil {
			t.Error(err)
		}
		if want := len(definitions) + 2; p.asked != want || time.Since(started) != time.Duration(want-1)*time.Second {
			t.Errorf("asked %d times in %s, not %d times", p.asked, time.Since(started), want)
		}
	})
}

func TestUpDoesNotWaitForKindsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		err := kindsShown(t.Context(), &slowPlane{most: 1}, time.Minute, time.Second)
		if err == nil || !strings.Contains(err.Error(), "is not shown") || !strings.Contains(err.Error(), "after 1m0s") {
			t.Errorf("one kind of several: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := kindsShown(ctx, &slowPlane{}, time.Minute, time.Second); err == nil || !strings.Contains(err.Error(), "interrupted") {
			t.Errorf("interrupted: %v", err)
		}
	})
}

// The management plane refuses a node group without a maxSize for some seconds.
func TestWaitForSizes(t *testing.T) {
	const (
		unavailable = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "ServiceUnavailable", "code": 503}`
		invalid     = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Invalid", "code": 422}`
		forbidden   = `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}`
	)
	for _, test := range []struct {
		about   string
		answers []string
		asked   int
		fails   bool
	}{
		{"at once", []string{""}, 1, false},
		{"after a while", []string{unavailable, invalid, ""}, 3, false},
		{"never", []string{unavailable}, 0, true},
		{"what time does not mend", []string{forbidden}, 1, false},
	} {
		asked := 0
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/apis/muster.dev/v1alpha1/namespaces/default/nodegroups" || r.URL.Query().Get("dryRun") != "All" {
				t.Errorf("%s: asked %s %s", test.about, r.Method, r.URL)
			}
			answer := test.answers[min(asked, len(test.answers)-1)]
			asked++
			w.Header().Set("Content-Type", "application/json")
			switch answer {
			case unavailable:
				w.WriteHeader(http.StatusServiceUnavailable)
			case invalid:
				w.WriteHeader(http.StatusUnprocessableEntity)
			case forbidden:
				w.WriteHeader(http.StatusForbidden)
			default:
				answer = `{"kind": "NodeGroup", "apiVersion": "muster.dev/v1alpha1"}`
			}
			_, _ = w.Write([]byte(answer))
		}))
		client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: server.URL})
		if err != nil {
			t.Fatal(err)
		}
		err = sizesWritten(t.Context(), client.RESTClient(), 300*time.Millisecond, time.Millisecond)
		server.Close()
		if (err != nil) != test.fails || test.asked != 0 && asked != test.asked {
			t.Errorf("%s: asked %d times, %v", test.about, asked, err)
		}
	}
}
