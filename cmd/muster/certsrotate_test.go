// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster.dev/muster/cmd/muster/terminal"
	"muster.dev/muster/internal/certificates/authority"
	"muster.dev/muster/internal/certificates/rotation"
	"muster.dev/muster/internal/cluster/servicestatus"
	"muster.dev/muster/internal/platform/statedir"
)

// fakeService answers on the socket of a state directory: with one status after the other, the last one for ever.
type fakeService struct {
	mu       sync.Mutex
	statuses []servicestatus.Rotation
	rotated  int
	// keys of service account tokens are answered in the same way.
	keys [][]servicestatus.TokenKey
	// asked is with what other keys were asked for.
	asked string
}

func (s *fakeService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.keys) > 0 {
		keys := s.keys[0]
		if len(s.keys) > 1 {
			s.keys = s.keys[1:]
		}
		if r.URL.Path == "/token-keys/rotate" {
			s.asked = r.URL.RawQuery
			_ = json.NewEncoder(w).Encode(keys)
			return
		}
		_ = json.NewEncoder(w).Encode(servicestatus.Status{Clusters: []servicestatus.Cluster{{Name: "muster", Namespace: "muster", TokenKeys: keys}}})
		return
	}
	status := s.statuses[0]
	if len(s.statuses) > 1 {
		s.statuses = s.statuses[1:]
	}
	if r.URL.Path == "/rotate" {
		s.rotated++
		_ = json.NewEncoder(w).Encode(status)
		return
	}
	_ = json.NewEncoder(w).Encode(servicestatus.Status{Clusters: []servicestatus.Cluster{{Name: "muster", Namespace: "muster", Rotation: &status}}})
}

// rotateCerts runs the command line against a service that tells these statuses.
func rotateCerts(t *testing.T, statuses []servicestatus.Rotation, args ...string) (out, talk string, code, rotated int) {
	t.Helper()
	service := &fakeService{statuses: statuses}
	out, talk, code = commandLine(t, service, len(statuses) > 0, append([]string{"certs", "rotate", "kubelet-ca"}, args...)...)
	return out, talk, code, service.rotated
}

// commandLine runs muster against a service on the socket of a state directory, or against none.
func commandLine(t *testing.T, service *fakeService, serves bool, args ...string) (out, talk string, code int) {
	t.Helper()
	path, err := os.MkdirTemp("", "mr-") //nolint:usetesting // the paths of sockets must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(path) })
	dir := statedir.Dir(path)
	if err := os.WriteFile(dir.Layout(), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(string(dir.Cluster("muster")), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(dir.Socket()), 0o700); err != nil {
		t.Fatal(err)
	}
	if serves {
		listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", dir.Socket())
		if err != nil {
			t.Fatal(err)
		}
		server := &http.Server{Handler: service, ReadHeaderTimeout: time.Minute}
		go func() { _ = server.Serve(listener) }()
		t.Cleanup(func() { _ = server.Close() })
	}
	var stdout, stderr bytes.Buffer
	code = run(append([]string{"--state-dir", path}, args...), terminal.Streams{Out: &stdout, Err: &stderr})
	service.mu.Lock()
	defer service.mu.Unlock()
	return stdout.String(), stderr.String(), code
}

func rotating(phase rotation.Phase, message string) servicestatus.Rotation {
	r := rotation.Start("kubelet-1", "kubelet-2", time.Now())
	r.Phase = phase
	return servicestatus.Rotation{Signs: r.Signs(), Trusts: r.Trusts(), Rotation: &r, Message: message}
}

func rotated(ago time.Duration) servicestatus.Rotation {
	finished := time.Now().Add(-ago)
	return servicestatus.Rotation{
		Signs: "kubelet-2", Trusts: []string{"kubelet-2"},
		Last: &authority.Rotated{Old: "kubelet-1", New: "kubelet-2", Started: finished.Add(-17 * time.Minute), Finished: finished},
	}
}

func TestRotateWaitsAndShowsEachChange(t *testing.T) {
	before := servicestatus.Rotation{Signs: "kubelet-1", Trusts: []string{"kubelet-1"}}
	out, talk, code, asked := rotateCerts(t, []servicestatus.Rotation{
		before, rotating(rotation.Trust, ""), rotating(rotation.Trust, "somebody has not read it"), rotating(rotation.Trust, "somebody has not read it"),
		rotating(rotation.Replace, "2 nodes"), rotating(rotation.Withdraw, "somebody has not forgotten it"), rotated(20 * time.Minute),
	})
	want := `Trust: kubelet-1 signs kubelets' certificates; kubelet-1 and kubelet-2 are trusted.
Trust: kubelet-1 signs kubelets' certificates; kubelet-1 and kubelet-2 are trusted: somebody has not read it.
Replace: kubelet-2 signs kubelets' certificates; kubelet-1 is trusted still: 2 nodes.
Withdraw: kubelet-2 signs kubelets' certificates; kubelet-1 is to be trusted no more: somebody has not forgotten it.
`
	if talk != want || code != 0 || asked != 1 {
		t.Errorf("code %d, asked %d times, it says:\n%s", code, asked, talk)
	}
	if want := "kubelet-2 signs kubelets' certificates, and is the only authority trusted for them. It replaced kubelet-1 20m ago, in 17m.\n"; out != want {
		t.Errorf("in the end: %s", out)
	}
}

func TestRotate(t *testing.T) {
	for name, test := range map[string]struct {
		statuses  []servicestatus.Rotation
		args      []string
		code      int
		asked     int
		out, talk string
	}{
		"not waiting":              {[]servicestatus.Rotation{rotating(rotation.Trust, "")}, []string{"--no-wait"}, 0, 1, "Trust: kubelet-1 signs", "The service goes on"},
		"as data":                  {[]servicestatus.Rotation{rotating(rotation.Trust, "")}, []string{"--no-wait", "-o", "json"}, 0, 1, `"phase": "Trust"`, ""},
		"too long":                 {[]servicestatus.Rotation{rotating(rotation.Replace, "x")}, []string{"--timeout", "400ms"}, 1, 1, "", "run the command again to wait"},
		"once more by mistake":     {[]servicestatus.Rotation{rotated(time.Minute)}, nil, 0, 0, "kubelet-2 signs", "Nothing was begun; --again"},
		"once more on purpose":     {[]servicestatus.Rotation{rotated(time.Minute)}, []string{"--again"}, 0, 1, "kubelet-2 signs", ""},
		"long after the last":      {[]servicestatus.Rotation{rotated(2 * time.Hour)}, nil, 0, 1, "kubelet-2 signs", ""},
		"the service does not run": {nil, nil, 1, 0, "", "muster up"},
		"of what":                  {nil, []string{"etcd"}, 2, 0, "", "usage: muster certs rotate kubelet-ca"},
		"in no format":             {nil, []string{"-o", "xml"}, 2, 0, "", "table, json or yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			out, talk, code, asked := rotateCerts(t, test.statuses, test.args...)
			if code != test.code || asked != test.asked || !strings.Contains(out, test.out) || !strings.Contains(talk, test.talk) || (test.talk == "") != (talk == "") || (test.out == "") != (out == "") {
				t.Errorf("code %d, asked %d times\nout: %s\ntalk: %s", code, asked, out, talk)
			}
		})
	}
}

func TestRotateServiceAccountKeys(t *testing.T) {
	now := time.Now()
	old := servicestatus.TokenKey{ID: "old", Signs: true, Created: now.Add(-50 * time.Hour), SignsFrom: now.Add(-49 * time.Hour), Published: true}
	next := servicestatus.TokenKey{ID: "next", Created: now, SignsFrom: now.Add(65 * time.Minute), Published: true}
	before, published := []servicestatus.TokenKey{old}, []servicestatus.TokenKey{old, next}
	old.Signs, next.Signs, next.SignsFrom = false, true, now
	signs := []servicestatus.TokenKey{old, next}
	old.Published = false
	const notice = "cluster=muster&notice=1h5m0s"
	for name, test := range map[string]struct {
		keys      [][]servicestatus.TokenKey
		args      []string
		code      int
		asked     string
		out, talk string
	}{
		"waiting":                        {[][]servicestatus.TokenKey{before, published, published, signs}, nil, 0, notice, "next                  signs", "the key next is published, and signs from "},
		"not waiting":                    {[][]servicestatus.TokenKey{before, published}, []string{"--no-wait"}, 0, notice, "next                  published, signs in 6", "The service goes on"},
		"after another notice":           {[][]servicestatus.TokenKey{before, signs}, []string{"--notice", "1s"}, 0, "cluster=muster&notice=1s", "old                   published", ""},
		"as data":                        {[][]servicestatus.TokenKey{before, published}, []string{"--no-wait", "-o", "json"}, 0, notice, `"signsFrom": "`, ""},
		"too long":                       {[][]servicestatus.TokenKey{before, published}, []string{"--timeout", "300ms"}, 1, notice, "", "run the command again to wait"},
		"once more by mistake":           {[][]servicestatus.TokenKey{signs}, nil, 0, "", "next                  signs", "Nothing was begun; --again"},
		"once more on purpose":           {[][]servicestatus.TokenKey{signs}, []string{"--again"}, 0, notice, "next                  signs", ""},
		"long after":                     {[][]servicestatus.TokenKey{{old, {ID: "next", Signs: true, SignsFrom: now.Add(-2 * time.Hour)}}, signs}, nil, 0, notice, "signs", ""},
		"kept for tokens that pods have": {[][]servicestatus.TokenKey{{old, {ID: "next", Signs: true, SignsFrom: now}}}, nil, 0, "", "old                   trusted by the API server", "Nothing was begun"},
	} {
		t.Run(name, func(t *testing.T) {
			service := &fakeService{keys: test.keys}
			out, talk, code := commandLine(t, service, true, append([]string{"certs", "rotate", "service-account-keys"}, test.args...)...)
			if code != test.code || service.asked != test.asked || !strings.Contains(out, test.out) || !strings.Contains(talk, test.talk) || (test.talk == "") != (talk == "") || (test.out == "") != (out == "") {
				t.Errorf("code %d, asked with %q\nout: %s\ntalk: %s", code, service.asked, out, talk)
			}
		})
	}
	if _, talk, code := commandLine(t, &fakeService{}, false, "certs", "rotate", "service-account-keys"); code != 1 || !strings.Contains(talk, "muster up") {
		t.Errorf("without a service: %d, %s", code, talk)
	}
	if _, talk, code := commandLine(t, &fakeService{}, false, "certs", "rotate", "kubelet-ca", "--notice", "1s"); code != 2 || !strings.Contains(talk, "service-account-keys alone") {
		t.Errorf("a notice of an authority: %d, %s", code, talk)
	}
}
