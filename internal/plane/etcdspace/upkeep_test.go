// SPDX-License-Identifier: Apache-2.0

package etcdspace

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"muster.dev/muster/internal/plane/diskreserve"
)

// etcd answers as etcd 3.6.16 does, whose numbers are texts in JSON.
type etcd struct {
	size, inUse, after int64
	alarm, compacted   bool
	refuses            string // the path of a request that it refuses
	asked              []string
}

func (e *etcd) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	raw, _ := io.ReadAll(r.Body)
	var request struct{ Action, MemberID, Alarm, Revision string }
	_ = json.Unmarshal(raw, &request)
	name := strings.TrimSpace(r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:] + " " + request.Action + request.Revision)
	if name != "status" && name != "alarm GET" {
		e.asked = append(e.asked, name)
	}
	switch {
	case r.URL.Path == e.refuses:
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, `{"code":14,"message":"etcdserver: request timed out"}`)
	case name == "status":
		_, _ = fmt.Fprintf(w, `{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"42","raft_term":"2"},"version":"3.6.16","dbSize":"%d","dbSizeInUse":"%d","dbSizeQuota":"%d"}`, e.size, e.inUse, 1000*mib)
	case name == "alarm GET" && e.alarm:
		_, _ = io.WriteString(w, `{"header":{},"alarms":[{"memberID":"13803658152347727308","alarm":"CORRUPT"},{"memberID":"13803658152347727309","alarm":"NOSPACE"}]}`)
	case name == "alarm ACTIVATE":
		e.alarm = request.MemberID == "10276657743932975437" && request.Alarm == "NOSPACE"
		_, _ = io.WriteString(w, `{}`)
	case name == "alarm DEACTIVATE":
		e.alarm = request.MemberID != "13803658152347727309" || request.Alarm != "NOSPACE"
		_, _ = io.WriteString(w, `{}`)
	case name == "compaction 42" && e.compacted:
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"code":11,"message":"etcdserver: mvcc: required revision has been compacted"}`)
	case name == "defragment":
		e.size = e.after
		_, _ = io.WriteString(w, `{}`)
	default:
		_, _ = io.WriteString(w, `{}`)
	}
}

func TestFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		etcd  etcd
		asked []string
		says  string // in its report, or the error
		fails bool
		alarm bool // afterwards
	}{
		"little is unused": {etcd{size: 500 * mib, inUse: 260 * mib}, nil, "nothing was done: of 240 MiB that are not in use none are worth a pause", false, false},
		"much is unused":   {etcd{size: 500 * mib, inUse: 200 * mib, after: 200 * mib}, []string{"defragment"}, "300 MiB were freed: its file has 200 MiB, 200 MiB of them in use, of a quota of 1000 MiB; etcd answered nobody for", false, false},
		"the alarm": {
			etcd{size: 1000 * mib, inUse: 990 * mib, after: 100 * mib, alarm: true},
			[]string{"compaction 42", "defragment", "alarm DEACTIVATE"},
			"the alarm NOSPACE is disarmed, and 900 MiB were freed", false, false,
		},
		"the history is gone": {
			etcd{size: 1000 * mib, inUse: 990 * mib, after: 900 * mib, alarm: true, compacted: true},
			[]string{"compaction 42", "defragment", "alarm DEACTIVATE"},
			"the alarm NOSPACE is disarmed", false, false,
		},
		"full of objects": {
			etcd{size: 1000 * mib, inUse: 1000 * mib, after: 1000 * mib, alarm: true},
			[]string{"compaction 42", "defragment"},
			"nothing is left of the quota: its file has 1000 MiB", true, true,
		},
		"it cannot compact": {
			etcd{size: 1000 * mib, alarm: true, refuses: "/v3/kv/compaction"},
			[]string{"compaction 42"},
			"asking etcd for /v3/kv/compaction: etcdserver: request timed out", true, true,
		},
		"the disk has no room": {
			etcd{size: 2500 * mib, inUse: 1001 * mib, after: 1001 * mib},
			nil,
			"defragmenting etcd writes 1001 MiB, and the disk of the state directory has room for 1000 MiB", true, false,
		},
		"the disk has no room, and there is the alarm": {
			etcd{size: 2500 * mib, inUse: 1001 * mib, after: 1001 * mib, alarm: true},
			[]string{"compaction 42"},
			"defragmenting etcd writes 1001 MiB", true, true,
		},
		"it says nothing": {etcd{refuses: "/v3/maintenance/status"}, nil, "asking etcd for /v3/maintenance/status", true, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&c.etcd)
			defer server.Close()
			f, err := Upkeep{URL: server.URL, Client: server.Client()}.Free(t.Context(), func() (int64, error) { return 1000 * mib, nil })
			says := f.String()
			if err != nil {
				says = err.Error()
			}
			if (err != nil) != c.fails || !strings.HasPrefix(says, c.says) || c.etcd.alarm != c.alarm {
				t.Errorf("%q, the alarm is %v, want %q", says, c.etcd.alarm, c.says)
			}
			if diff := cmp.Diff(c.asked, c.etcd.asked); diff != "" {
				t.Errorf("asked (-want +got)\n%s", diff)
			}
		})
	}
}

func TestFollow(t *testing.T) {
	t.Parallel()
	alarm := func(asked ...string) []string { return asked }
	for name, c := range map[string]struct {
		disk  diskreserve.State
		etcd  etcd
		asked []string
		alarm bool // afterwards
		full  bool // the disk is
	}{
		"room":                              {diskreserve.Plenty, etcd{size: 100 * mib}, nil, false, false},
		"the disk is full":                  {diskreserve.Full, etcd{size: 100 * mib}, alarm("alarm ACTIVATE"), true, true},
		"it is still full":                  {diskreserve.Full, etcd{size: 100 * mib, alarm: true}, nil, true, true},
		"room again":                        {diskreserve.Plenty, etcd{size: 100 * mib, alarm: true}, alarm("alarm DEACTIVATE"), false, false},
		"little room, and the alarm":        {diskreserve.Narrow, etcd{size: 100 * mib, alarm: true}, nil, true, true},
		"an alarm of somebody else":         {diskreserve.Plenty, etcd{size: 100 * mib, alarm: true}, nil, true, false},
		"little room":                       {diskreserve.Narrow, etcd{size: 100 * mib}, nil, false, false},
		"the quota's alarm":                 {diskreserve.Plenty, etcd{size: 1000 * mib, alarm: true}, nil, true, false},
		"the quota's alarm on a full disk":  {diskreserve.Full, etcd{size: 1000 * mib, alarm: true}, nil, true, false},
		"it does not take the alarm":        {diskreserve.Full, etcd{size: 100 * mib, refuses: alarmPath}, nil, false, false},
		"a full disk and a file near quota": {diskreserve.Full, etcd{size: 900 * mib}, alarm("alarm ACTIVATE"), true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(&c.etcd)
			defer server.Close()
			s, err := Upkeep{URL: server.URL, Client: server.Client()}.follow(t.Context(), c.disk, name != "an alarm of somebody else")
			if (err != nil) != (c.etcd.refuses != "") || c.etcd.alarm != c.alarm || err == nil && s.NoSpace != c.alarm || s.DiskFull != c.full {
				t.Errorf("%+v, %v; the alarm is %v", s, err, c.etcd.alarm)
			}
			if c.etcd.refuses == "" {
				if diff := cmp.Diff(c.asked, c.etcd.asked); diff != "" {
					t.Errorf("asked (-want +got)\n%s", diff)
				}
			}
		})
	}
}

// An alarm is told once, and what was heard last is kept.
func TestWatch(t *testing.T) {
	t.Parallel()
	e := &etcd{size: 1000 * mib, inUse: 500 * mib, alarm: true}
	server := httptest.NewServer(e)
	defer server.Close()
	var w Watch
	var told []Space
	disk := diskreserve.New("", slog.New(slog.DiscardHandler)) // which is not known
	for range 2 {
		ctx, cancel := context.WithCancel(t.Context())
		w.Run(ctx, Upkeep{URL: server.URL, Client: &http.Client{Transport: endsWith{server.Client().Transport, cancel}}}, disk, func(s Space) { told = append(told, s) }, slog.New(slog.DiscardHandler))
	}
	if s := w.Last(); s != (Space{Size: 1000 * mib, InUse: 500 * mib, Quota: 1000 * mib, NoSpace: true}) || len(told) != 1 || told[0] != s {
		t.Errorf("%+v, %+v", s, told)
	}
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(NewCollector(func() map[string]Space { return map[string]Space{"blue": w.Last(), "green": {}} }))
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[f.GetName()+" "+m.GetLabel()[0].GetValue()] = m.GetGauge().GetValue()
		}
	}
	want := map[string]float64{"muster_etcd_size_bytes blue": 1000 * mib, "muster_etcd_in_use_bytes blue": 500 * mib, "muster_etcd_quota_bytes blue": 1000 * mib, "muster_etcd_no_space blue": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got)\n%s", diff)
	}
}

// endsWith has a watch end after it has asked for alarms once.
type endsWith struct {
	http.RoundTripper

	end context.CancelFunc
}

func (e endsWith) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := e.RoundTripper.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
	if strings.HasSuffix(r.URL.Path, "/alarm") {
		defer e.end()
		if err == nil {
			raw, _ := io.ReadAll(answer.Body)
			answer.Body = io.NopCloser(strings.NewReader(string(raw)))
		}
	}
	return answer, err
}
