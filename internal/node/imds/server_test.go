// SPDX-License-Identifier: Apache-2.0

package imds

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"
)

// machines is a directory for tests.
type machines map[netip.Addr]Instance

func (m machines) Lookup(address netip.Addr) (Instance, error) {
	if instance, ok := m[address]; ok {
		return instance, nil
	}
	return Instance{}, ErrNotFound
}

func (m machines) UserData(id string) ([]byte, error) {
	switch {
	case strings.HasSuffix(id, "e"):
		return nil, ErrNotFound
	case strings.HasSuffix(id, "f"):
		return nil, errors.New("the disk is gone")
	}
	return []byte("user data of " + id), nil
}

var (
	first  = netip.MustParseAddr("192.168.64.11")
	second = netip.MustParseAddr("192.168.64.12")
	third  = netip.MustParseAddr("192.168.64.13")
	pod    = netip.MustParseAddr("10.244.1.2")
)

func instance(id string, address netip.Addr) Instance {
	return Instance{
		ID: id, Type: "m5.large", PrivateIP: address, PrivateDNSName: "ip-192-168-64-11.muster.test",
		Region: "us-east-1", Zone: "us-east-1b", ZoneID: "use1-az2",
		AccountID: "000000000000", ImageID: "ami-0123456789abcdef0", SecurityGroupIDs: []string{"sg-0123456789abcdef0", "sg-0123456789abcdef1"}, Scaled: true,
		MAC: net.HardwareAddr{10, 'm', 192, 168, 64, 11}, LaunchTime: time.Unix(1700000000, 0), Network: netip.MustParsePrefix("192.168.64.0/18"), HopLimit: 1,
	}
}

func directory() machines {
	return machines{
		first:  instance("i-0000000000000000a", first),
		second: instance("i-0000000000000000e", second),
		third:  instance("i-0000000000000000f", third),
	}
}

// clock is one that tests turn.
type clock struct{ now time.Time }

func newServer(t *testing.T, log io.Writer) (*Server, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1700000000, 0)}
	s, err := NewServer(ServerConfig{
		Directory: directory(), Key: bytes.Repeat([]byte{7}, keySize), Log: slog.New(slog.NewTextHandler(log, nil)), Now: func() time.Time { return c.now },
	})
	if err != nil {
		t.Fatal(err)
	}
	return s, c
}

// ask sends one request from an address; headers are given as name, value, name, value.
func ask(s *Server, from netip.Addr, method, path string, headers ...string) *httptest.ResponseRecorder {
	request := httptest.NewRequest(method, "http://"+Address+path, http.NoBody)
	request.RemoteAddr = netip.AddrPortFrom(from, 40000).String()
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
			continue
		}
		request.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, request)
	return w
}

func token(t *testing.T, s *Server, from netip.Addr, ttl int) string {
	t.Helper()
	w := ask(s, from, http.MethodPut, tokenPath, "X-aws-ec2-metadata-token-ttl-seconds", strconv.Itoa(ttl))
	if w.Code != http.StatusOK || w.Header().Get(ttlHeader) != strconv.Itoa(ttl) || w.Body.Len() == 0 {
		t.Fatalf("no token: %d %v %q", w.Code, w.Header(), w.Body)
	}
	return w.Body.String()
}

func TestTokens(t *testing.T) {
	s, c := newServer(t, io.Discard)
	for _, test := range []struct {
		name    string
		method  string
		headers []string
		want    int
	}{
		{"the least", http.MethodPut, []string{ttlHeader, "1"}, 200},
		{"the most", http.MethodPut, []string{ttlHeader, "21600"}, 200},
		{"no TTL", http.MethodPut, nil, 400},
		{"TTL 0", http.MethodPut, []string{ttlHeader, "0"}, 400},
		{"TTL too long", http.MethodPut, []string{ttlHeader, "21601"}, 400},
		{"negative TTL", http.MethodPut, []string{ttlHeader, "-1"}, 400},
		{"TTL with a sign", http.MethodPut, []string{ttlHeader, "+60"}, 400},
		{"TTL of another base", http.MethodPut, []string{ttlHeader, "0x3c"}, 400},
		{"TTL of two to the 64th and 60", http.MethodPut, []string{ttlHeader, "18446744073709551676"}, 400},
		{"TTL is no number", http.MethodPut, []string{ttlHeader, "1h"}, 400},
		{"two TTLs", http.MethodPut, []string{ttlHeader, "60", ttlHeader, "60"}, 400},
		{"through a proxy", http.MethodPut, []string{ttlHeader, "60", "X-Forwarded-For", "10.0.0.1"}, 403},
		{"through a proxy that hides", http.MethodPut, []string{ttlHeader, "60", "x-forwarded-for", ""}, 403},
		{"by a name", http.MethodPut, []string{ttlHeader, "60", "Host", "evil.example"}, 403},
		{"GET", http.MethodGet, []string{ttlHeader, "60"}, 405},
		{"POST", http.MethodPost, []string{ttlHeader, "60"}, 405},
	} {
		if got := ask(s, first, test.method, tokenPath, test.headers...).Code; got != test.want {
			t.Errorf("%s: %d, want %d", test.name, got, test.want)
		}
	}

	good := token(t, s, first, 60)
	get := func(from netip.Addr, headers ...string) int {
		return ask(s, from, http.MethodGet, "/latest/meta-data/instance-id", headers...).Code
	}
	if got := get(first, tokenHeader, good); got != 200 {
		t.Errorf("good token: %d", got)
	}
	for name, headers := range map[string][]string{
		"none": nil, "empty": {tokenHeader, ""}, "wrong": {tokenHeader, strings.Repeat("A", len(good))}, "cut": {tokenHeader, good[:len(good)-1]},
		"longer": {tokenHeader, good + "A"}, "changed": {tokenHeader, flip(good, 3)}, "two": {tokenHeader, good, tokenHeader, good},
	} {
		if got := get(first, headers...); got != 401 {
			t.Errorf("token %s: %d, want 401", name, got)
		}
	}
	if got := get(second, tokenHeader, good); got != 401 {
		t.Errorf("another machine's token: %d, want 401", got)
	}
	other, err := NewServer(ServerConfig{Directory: directory(), Key: bytes.Repeat([]byte{8}, keySize), Log: slog.New(slog.DiscardHandler), Now: func() time.Time { return c.now }})
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(other, first, http.MethodGet, "/latest/user-data", tokenHeader, good).Code; got != 401 {
		t.Errorf("token under another key: %d, want 401", got)
	}
	c.now = c.now.Add(59 * time.Second)
	w := ask(s, first, http.MethodGet, "/latest/user-data", tokenHeader, good)
	if w.Code != 200 || w.Header().Get(ttlHeader) != "1" || w.Body.String() != "user data of i-0000000000000000a" {
		t.Errorf("in its last second: %d %v %q", w.Code, w.Header(), w.Body)
	}
	c.now = c.now.Add(time.Second)
	if got := get(first, tokenHeader, good); got != 401 {
		t.Errorf("expired token: %d, want 401", got)
	}
}

// flip changes one character.
func flip(s string, at int) string {
	b := []byte(s)
	b[at] ^= 1
	return string(b)
}

// Everything that there is, and nothing else.
func TestPaths(t *testing.T) {
	s, _ := newServer(t, io.Discard)
	good := token(t, s, first, 60)
	for path, want := range map[string]string{
		"/": "1.0\n2007-01-19\n2007-03-01\n2007-08-29\n2007-10-10\n2007-12-15\n2008-02-01\n2008-09-01\n2009-04-04\n2011-01-01\n2011-05-01\n2012-01-12\n" +
			"2014-02-25\n2014-11-05\n2015-10-20\n2016-04-19\n2016-06-30\n2016-09-02\n2018-03-28\n2018-08-17\n2018-09-24\n2019-10-01\n2020-10-27\n" +
			"2021-01-03\n2021-03-23\n2021-07-15\n2022-09-24\n2024-04-11\nlatest",
		"/latest":                  "dynamic/\nmeta-data/\nuser-data",
		"/latest/":                 "dynamic/\nmeta-data/\nuser-data",
		"/latest/meta-data/":       "ami-id\nautoscaling/\nblock-device-mapping/\nevents/\nhostname\ninstance-id\ninstance-life-cycle\ninstance-type\nlocal-hostname\nlocal-ipv4\nmac\nnetwork/\nplacement/\nservices/",
		"/latest/meta-data/ami-id": "ami-0123456789abcdef0",
		"/latest/meta-data/block-device-mapping/":                                         "ami\nroot",
		"/latest/meta-data/block-device-mapping/root":                                     "/dev/xvda",
		"/latest/meta-data/events/maintenance/scheduled":                                  "[]",
		"/latest/meta-data/events/recommendations/rebalance":                              "404",
		"/latest/meta-data/spot/instance-action":                                          "404",
		"/latest/meta-data/autoscaling/target-lifecycle-state":                            "InService",
		"/latest/meta-data/services/domain":                                               "amazonaws.com",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0b/owner-id":            "000000000000",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0b/security-group-ids":  "sg-0123456789abcdef0\nsg-0123456789abcdef1",
		"/latest/meta-data/instance-life-cycle":                                           "on-demand",
		"/latest/meta-data/instance-id":                                                   "i-0000000000000000a",
		"/latest/meta-data/instance-type":                                                 "m5.large",
		"/latest/meta-data/local-ipv4":                                                    "192.168.64.11",
		"/latest/meta-data/local-hostname":                                                "ip-192-168-64-11.muster.test",
		"/latest/meta-data/hostname":                                                      "ip-192-168-64-11.muster.test",
		"/latest/meta-data/mac":                                                           "0a:6d:c0:a8:40:0b",
		"/latest/meta-data/placement":                                                     "availability-zone\navailability-zone-id\nregion",
		"/latest/meta-data/placement/region":                                              "us-east-1",
		"/latest/meta-data/placement/availability-zone":                                   "us-east-1b",
		"/latest/meta-data/placement/availability-zone-id":                                "use1-az2",
		"/latest/meta-data/network/":                                                      "interfaces/",
		"/latest/meta-data/placement/region/":                                             "us-east-1",
		"/latest/meta-data/network/interfaces/macs/":                                      "0a:6d:c0:a8:40:0b/",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0b/local-ipv4s":         "192.168.64.11",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0b/vpc-ipv4-cidr-block": "192.168.64.0/18",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0b/interface-id":        "eni-0000000000000000a",
		"/latest/meta-data/iam/security-credentials/":                                     "404",
		"/latest/meta-data/network/interfaces/macs/0a:6d:c0:a8:40:0c/mac":                 "404",
		"/latest/meta-dat":                                                                "404",
		"/latest/meta-data/instance-id/x":                                                 "404",
		"/latest/meta-data//instance-id":                                                  "404",
		"/latest/../../etc/passwd":                                                        "404",
		"//latest/user-data":                                                              "404",
		// The paths that cloud-init and others ask for by a date.
		"/2021-07-15/meta-data/instance-id":            "i-0000000000000000a",
		"/2021-03-23/meta-data/placement/":             "availability-zone\navailability-zone-id\nregion",
		"/2021-03-23":                                  "dynamic/\nmeta-data/\nuser-data",
		"/2009-04-04/":                                 "dynamic/\nmeta-data/\nuser-data",
		"/2009-04-04/user-data":                        "user data of i-0000000000000000a",
		"/1.0/meta-data/local-ipv4":                    "192.168.64.11",
		"/2021-07-15/meta-data/none":                   "404",
		"/2021-07-16/meta-data/instance-id":            "404",
		"/2021-07-15/latest/meta-data/instance-id":     "404",
		"/2021-07-15/2021-07-15/meta-data/instance-id": "404",
		"/meta-data/instance-id":                       "404",
		"/latest/user-data/":                           "user data of i-0000000000000000a",
		"/latest/dynamic/":                             "instance-identity/",
	} {
		w := ask(s, first, http.MethodGet, path, tokenHeader, good)
		got := w.Body.String()
		if w.Code != 200 {
			got = strconv.Itoa(w.Code)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for _, method := range []string{http.MethodPut, http.MethodPost, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
		if w := ask(s, first, method, "/latest/user-data", tokenHeader, good); w.Code != 405 {
			t.Errorf("%s: %d, want 405", method, w.Code)
		}
	}
}

// A machine that nobody knows learns nothing, not even how to ask. A failure is logged, and not told.
func TestWhoAsks(t *testing.T) {
	var log bytes.Buffer
	s, _ := newServer(t, &log)
	if w := ask(s, pod, http.MethodPut, tokenPath, ttlHeader, "60"); w.Code != 404 {
		t.Errorf("unknown address: %d, want 404", w.Code)
	}
	if w := ask(s, second, http.MethodGet, "/latest/user-data", tokenHeader, token(t, s, second, 60)); w.Code != 404 {
		t.Errorf("no user data: %d, want 404", w.Code)
	}
	w := ask(s, third, http.MethodGet, "/latest/user-data", tokenHeader, token(t, s, third, 60))
	if w.Code != 500 || strings.Contains(w.Body.String(), "disk") || !strings.Contains(log.String(), "the disk is gone") {
		t.Errorf("unreadable user data: %d %q, log %q", w.Code, w.Body, &log)
	}
}

// A machine that asks without end is told to wait, and other machines are not.
func TestRates(t *testing.T) {
	s, c := newServer(t, io.Discard)
	good, others := token(t, s, first, 600), token(t, s, second, 600)
	get := func(from netip.Addr, token string) int {
		return ask(s, from, http.MethodGet, "/latest/meta-data/mac", tokenHeader, token).Code
	}
	answered := 0
	for range 2 * burst {
		if get(first, good) == 200 {
			answered++
		}
	}
	if answered != burst-1 { // the token took one
		t.Errorf("%d at once, want %d", answered, burst-1)
	}
	if got := get(first, good); got != 503 {
		t.Errorf("one too many: %d, want 503", got)
	}
	if got := get(second, others); got != 200 {
		t.Errorf("another machine: %d, want 200", got)
	}
	c.now = c.now.Add(time.Second)
	answered = 0
	for range 2 * perSecond {
		if get(first, good) == 200 {
			answered++
		}
	}
	if answered != perSecond {
		t.Errorf("%d a second later, want %d", answered, perSecond)
	}
	for i := range 2 * remembered {
		s.rates.take(fmt.Sprint(i))
		c.now = c.now.Add(time.Minute)
	}
	if len(s.rates.buckets) > remembered {
		t.Errorf("%d machines are remembered", len(s.rates.buckets))
	}
}

func TestNewServer(t *testing.T) {
	for _, config := range []ServerConfig{
		{},
		{Directory: directory(), Log: slog.New(slog.DiscardHandler)},
		{Directory: directory(), Log: slog.New(slog.DiscardHandler), Key: []byte("short")},
	} {
		if _, err := NewServer(config); err == nil {
			t.Errorf("%+v was accepted", config)
		}
	}
}

// No text passes for a token by accident, and none makes the check panic.
func FuzzToken(f *testing.F) {
	s := signer{key: bytes.Repeat([]byte{7}, keySize)}
	now := time.Unix(1700000000, 0)
	good := s.token("i-0000000000000000a", now.Add(time.Minute))
	for _, seed := range []string{"", good, good[:10], flip(good, 50), "====", good + "="} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		left, ok := s.check(text, "i-0000000000000000a", now)
		if ok && (text != good || left != time.Minute) {
			t.Errorf("%q passes for %v", text, left)
		}
	})
}

func FuzzLookup(f *testing.F) {
	leaves := instance("i-0000000000000000a", first).metadata()
	for _, seed := range []string{"", "/", "placement", "placement/", "mac/", "//", "network/interfaces/macs"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		content, ok := lookup(leaves, path)
		if ok && content == "" {
			t.Errorf("%q is there and empty", path)
		}
	})
}

// An instance says what it was bought as, and whether a group keeps it.
func TestMarketAndGroup(t *testing.T) {
	i := instance("i-0000000000000000a", first)
	i.Spot, i.Scaled = true, false
	leaves := i.metadata()
	if leaves["instance-life-cycle"] != "spot" {
		t.Errorf("a spot instance is %q", leaves["instance-life-cycle"])
	}
	if state, has := leaves["autoscaling/target-lifecycle-state"]; has {
		t.Errorf("an instance of no group is to be %q", state)
	}
}
