// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func names(list []chosen) string {
	var all []string
	for _, c := range list {
		all = append(all, c.name)
	}
	return strings.Join(all, " ")
}

func TestSampleBeginsWithTheChange(t *testing.T) {
	t.Parallel()
	stories := []story{
		{name: "A", file: "test/stories/a_test.go", about: []string{"internal/node"}},
		{name: "B", file: "test/stories/b_test.go", about: []string{"internal/cluster/vpc"}},
		{name: "C", file: "test/stories/c_test.go", about: []string{"internal/cluster"}, alone: true},
		{name: "D", file: "test/stories/d_test.go", about: []string{"egress"}},
		{name: "Soak", file: "test/stories/s_test.go", about: []string{"internal/cluster"}, soak: true},
		{name: "Core", file: "test/stories/core_test.go", about: []string{"internal/cluster"}},
	}
	for _, tc := range []struct{ changed, touched string }{
		{"", ""},
		{"internal/cluster/vpc/x.go", "C B"},
		{"internal/cluster/vpc/README.md", ""},
		{"internal/cluster/vpcs/x.go", "C"},
		{"internal/node/agent/x.go egress/main.go", "A D"},
		{"test/stories/b_test.go", "B"},
	} {
		list := sample(stories, []string{"Core"}, strings.Fields(tc.changed), times{"A": 90, "D": 30}, time.Unix(0, 0))
		touched := slices.DeleteFunc(slices.Clone(list), func(c chosen) bool { return strings.HasPrefix(c.why, "part ") })
		if got := names(touched); got != tc.touched {
			t.Errorf("a change of %q touches %q, want %q", tc.changed, got, tc.touched)
		}
		if len(list) != 4 || !strings.HasPrefix(names(list), tc.touched) {
			t.Errorf("a change of %q: all are %q", tc.changed, names(list))
		}
	}
}

// Each story is among the first part's on one day of six, and all are in the list each day.
func TestSampleMovesOnByTheDay(t *testing.T) {
	t.Parallel()
	var stories []story
	for n := range 20 {
		stories = append(stories, story{name: fmt.Sprintf("T%02d", n), about: []string{"x"}})
	}
	first := map[string]int{}
	for day := range parts {
		list := sample(stories, nil, nil, nil, time.Unix(int64(day)*24*60*60+60, 0))
		if len(list) != len(stories) {
			t.Fatalf("day %d has %d stories", day, len(list))
		}
		of := list[0].why
		for _, c := range list {
			if c.why == of {
				first[c.name]++
			}
		}
	}
	for _, s := range stories {
		if first[s.name] != 1 {
			t.Errorf("%s is in the day's part %d times in %d days", s.name, first[s.name], parts)
		}
	}
}

// A sample has a story that needs a large build only where that was made.
func TestUnbuilt(t *testing.T) {
	t.Parallel()
	stories := []story{{name: "plain"}, {name: "built", needs: "addons"}, {name: "large", needs: "karpenter"}, {name: "both", needs: "karpenter kubernetes MINOR=1.37"}}
	for has, want := range map[bool][]string{false: {"large", "both"}, true: nil} {
		if got := unbuilt(stories, func(string) bool { return has }); !slices.Equal(got, want) {
			t.Errorf("built %v: %v are left out", has, got)
		}
	}
}

func TestOrder(t *testing.T) {
	t.Parallel()
	list := []chosen{{story: story{name: "short"}}, {story: story{name: "long"}}, {story: story{name: "built", alone: true, needs: "addons"}}, {story: story{name: "alone", alone: true}}, {story: story{name: "new"}}}
	order(list, times{"short": 5, "long": 200, "alone": 1})
	if got := names(list); got != "alone long new short built" {
		t.Errorf("the order is %s", got)
	}
}

func TestSlots(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		processors, inotify int
		memory              int64
		n                   int
		limit               string
	}{
		{2, 512, 20 << 30, 4, "2 processors"},
		{2, 128, 20 << 30, 2, "fs.inotify.max_user_instances 128"},
		{16, 8192, 8 << 30, 4, "8192 MiB of available memory"},
		{16, 16, 1 << 20, 1, "fs.inotify.max_user_instances 16"},
	} {
		if n, limit := slots(tc.processors, tc.inotify, tc.memory); n != tc.n || limit != tc.limit {
			t.Errorf("%+v: %d by %s", tc, n, limit)
		}
	}
	if n, limit, err := slotsHere(); err != nil || n < 1 || limit == "" {
		t.Errorf("here: %d by %q (%v)", n, limit, err)
	}
}
