// SPDX-License-Identifier: Apache-2.0

package apiservermemory

import (
	"slices"
	"strings"
	"testing"
	"time"

	"muster.dev/muster/internal/plane/runner"
)

const (
	endedOnce  = "the kernel ended kube-apiserver at its memory limit of 512 MiB (it used 511 MiB) at 2026-11-26T12:00:00Z: if the cluster needs more, raise spec.apiServer.memoryLimit of the Cluster"
	endedTwice = "the kernel ended kube-apiserver at its memory limit of 512 MiB (it used 511 MiB) at 2026-11-26T12:00:00Z, the last of 2 times: if the cluster needs more, raise spec.apiServer.memoryLimit of the Cluster"
	stillInUse = "spec.apiServer.memoryLimit: a limit of 512 MiB cannot take effect while 600 MiB are in use; the limit stays 1024 MiB until kube-apiserver is started again"
)

// memories are the ways in which an API server can be held to its memory.
func memories() map[string]runner.Memory {
	last := runner.MemoryEnd{At: time.Date(2026, 11, 26, 12, 0, 0, 0, time.UTC), Limit: 512 << 20, Used: 511 << 20}
	return map[string]runner.Memory{
		"starting":    {},
		"limited":     {Limit: 4 << 30},
		"ended once":  {Limit: 512 << 20, Ended: 1, Last: last},
		"ended twice": {Limit: 512 << 20, Ended: 2, Last: last},
		"in use":      {Limit: 1 << 30, Problem: "a limit of 512 MiB cannot take effect while 600 MiB are in use; the limit stays 1024 MiB"},
		"unlimited":   {Problem: "that takes root, and muster does not run as root"},
	}
}

// Of two API servers the one with a problem is told, and the ends of both.
func TestMemoryOfTwo(t *testing.T) {
	t.Parallel()
	m := memories()
	later := m["ended twice"]
	later.Last.At = later.Last.At.Add(time.Minute)
	both := later
	both.Ended = 3
	inUse := m["in use"]
	inUse.Ended, inUse.Last = 1, m["ended once"].Last
	for name, test := range map[string]struct{ first, second, want runner.Memory }{
		"one starts":     {m["starting"], m["limited"], m["limited"]},
		"both ended":     {m["ended once"], later, both},
		"in use, second": {m["ended once"], m["in use"], inUse},
		"in use, first":  {m["in use"], m["ended once"], inUse},
	} {
		got := Of([]runner.Status{{Name: "etcd", Memory: m["unlimited"]}, {Name: "kube-apiserver", Memory: test.first}, {Name: "kube-apiserver-1", Memory: test.second}})
		if got != test.want {
			t.Errorf("%s: %+v, want %+v", name, got, test.want)
		}
	}
}

func TestMemoryCondition(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"starting":    "",
		"limited":     "True Limited kube-apiserver is held to 4096 MiB of memory",
		"ended once":  "True EndedAtLimit " + endedOnce,
		"ended twice": "True EndedAtLimit " + endedTwice,
		"in use":      "False LimitInUse " + stillInUse,
		"unlimited":   "False NotLimited kube-apiserver runs without a memory limit: that takes root, and muster does not run as root",
	} {
		condition, known := Condition(memories()[name])
		got := ""
		if known {
			got = strings.Join([]string{string(condition.Status), condition.Reason, condition.Message}, " ")
		}
		if got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestMemoryNotes(t *testing.T) {
	t.Parallel()
	for name, want := range map[string][]string{
		"starting": nil, "limited": nil, "unlimited": nil, "ended twice": {endedTwice}, "in use": {stillInUse},
	} {
		if got := Notes(memories()[name]); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// Each end at the limit is told once, also if the supervisor is another one; so is a limit that is not in force.
func TestMemoryNotice(t *testing.T) {
	t.Parallel()
	of := memories()
	later := of["ended once"]
	later.Last.At = later.Last.At.Add(time.Hour)
	var notice Notice
	for _, step := range []struct {
		what string
		is   runner.Memory
		want int
	}{
		{"it starts", of["starting"], 0},
		{"it has no limit", of["unlimited"], 0},
		{"it runs", of["limited"], 0},
		{"it is ended", of["ended once"], 1},
		{"it runs again", of["ended once"], 0},
		{"it is ended again, under another supervisor", later, 1},
		{"the limit is lowered", of["in use"], 1},
		{"it runs on", of["in use"], 0},
		{"it is started again", of["limited"], 0},
		{"the limit is lowered again", of["in use"], 1},
	} {
		if got := notice.due(step.is); len(got) != step.want {
			t.Errorf("%s: told %q", step.what, got)
		}
	}
}
