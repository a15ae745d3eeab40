// SPDX-License-Identifier: Apache-2.0

package etcdspace

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const mib = 1 << 20

func TestWorth(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		size, inUse int64 // MiB
		want        bool
	}{
		"an empty one":               {0, 0, false},
		"little":                     {200, 0, false},
		"more than 200 MiB":          {201, 0, true},
		"much, and less than a half": {1000, 500, false},
		"much, and more than a half": {1000, 499, true},
		"a half of little":           {300, 100, false},
		"nearly full of history":     {3300, 3099, true},
		"nearly full of objects":     {3300, 3100, false},
	} {
		if got := (Space{Size: c.size * mib, InUse: c.inUse * mib, Quota: 4096 * mib}).Worth(); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := (Space{InUse: 500 * mib}).Pause(); got != 11*time.Second {
		t.Errorf("the pause is %s", got)
	}
}

func TestCondition(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		space   Space
		status  metav1.ConditionStatus
		reason  string
		message string
	}{
		"new":         {Space{Size: 1, InUse: 1, Quota: 100 * mib}, metav1.ConditionTrue, "Enough", "the file of etcd has at most 10 % of its quota of 100 MiB, and at most 10 % are in use"},
		"below":       {Space{Size: 80*mib - 1, InUse: 20 * mib, Quota: 100 * mib}, metav1.ConditionTrue, "Enough", "at most 80 % of its quota of 100 MiB, and at most 20 % are in use"},
		"nearly full": {Space{Size: 80 * mib, InUse: 20 * mib, Quota: 100 * mib}, metav1.ConditionFalse, "NearlyFull", "muster defragment"},
		"the alarm":   {Space{Size: 10 * mib, InUse: 10 * mib, Quota: 100 * mib, NoSpace: true}, metav1.ConditionFalse, "NoSpace", "its file has reached the quota"},
		"a full disk": {Space{Size: 10 * mib, InUse: 10 * mib, Quota: 100 * mib, NoSpace: true, DiskFull: true}, metav1.ConditionFalse, "NoSpace", "the disk of the state directory is full"},
	} {
		got, known := c.space.Condition()
		if !known || got.Status != c.status || got.Reason != c.reason || !strings.Contains(got.Message, c.message) {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got, known := (Space{}).Condition(); known {
		t.Errorf("of one that was not asked: %+v", got)
	}
}
