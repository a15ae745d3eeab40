// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"testing"
	"time"
)

func TestSummary(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	recently, longAgo := now.Add(-time.Second), now.Add(-time.Minute)
	ready := Status{Name: "etcd", State: Ready, Since: longAgo}
	for name, test := range map[string]struct {
		statuses []Status
		want     string
	}{
		"nothing":       {nil, ""},
		"all are Ready": {[]Status{ready, ready}, ""},
		"one starts":    {[]Status{ready, {Name: "scheduler", State: Starting, Since: recently, Message: "it does not listen at 127.0.0.1:1"}}, "starting scheduler"},
		"several start": {
			[]Status{{Name: "etcd", State: Starting, Since: recently, Message: "it does not listen at 127.0.0.1:1"}, {Name: "scheduler", State: Waiting, Since: longAgo, Message: "for [etcd]"}},
			"starting 2 components: etcd, scheduler",
		},
		"one takes long": {
			[]Status{{Name: "etcd", State: Starting, Since: longAgo, Message: "it does not listen at 127.0.0.1:1"}, {Name: "scheduler", State: Waiting, Since: longAgo, Message: "for [etcd]"}},
			"starting 2 components; etcd takes long: it does not listen at 127.0.0.1:1",
		},
		"one ends again and again": {
			[]Status{{Name: "etcd", State: Backoff, Restarts: 3, Message: "it ended"}, {Name: "scheduler", State: Waiting}},
			"starting scheduler; etcd was started again 3 times: it ended",
		},
		"one was started again":  {[]Status{{Name: "etcd", State: Starting, Restarts: 1, Message: "it does not listen"}}, "etcd was started again once"},
		"one does not answer":    {[]Status{ready, {Name: "scheduler", State: Unready, Message: "https://x answers 500: leader"}}, "scheduler does not answer: https://x answers 500: leader"},
		"one waits for that one": {[]Status{{Name: "etcd", State: Unready, Message: "timeout"}, {Name: "scheduler", State: Waiting, Restarts: 2}}, "etcd does not answer: timeout; scheduler was started again 2 times"},
	} {
		if got := Summary(test.statuses, now); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
