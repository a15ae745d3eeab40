// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestWhatACopyHasNot(t *testing.T) {
	t.Parallel()
	now := time.Now()
	later := now.Add(time.Minute)
	old := &metav1.ObjectMeta{UID: "a", ResourceVersion: "5"}
	changed := &metav1.ObjectMeta{UID: "a", ResourceVersion: "7"}
	ending := &metav1.ObjectMeta{UID: "a", ResourceVersion: "5", DeletionTimestamp: &metav1.Time{Time: now}}
	another := &metav1.ObjectMeta{UID: "b", ResourceVersion: "9"}
	write := fence{uid: "a", version: 7, until: later}
	deletion := fence{uid: "a", gone: true, until: later}
	unknown := fence{gone: true, until: later}
	doubt := fence{until: later}
	for name, tt := range map[string]struct {
		fences []fence
		object metav1.Object
		left   int
	}{
		"a write that is not reported":                        {[]fence{write}, old, 1},
		"one that is":                                         {[]fence{write}, changed, 0},
		"one of an object that is not there yet":              {[]fence{write}, nil, 1},
		"one that a later object of the name has overtaken":   {[]fence{write}, another, 0},
		"one that has been waited for too long":               {[]fence{{uid: "a", version: 7, until: now}}, old, 0},
		"a deletion that is not reported":                     {[]fence{deletion}, old, 1},
		"one that has begun":                                  {[]fence{deletion}, ending, 0},
		"one that is done":                                    {[]fence{deletion}, nil, 0},
		"one after which the name was taken again":            {[]fence{deletion}, another, 0},
		"one of an unknown object that is there":              {[]fence{unknown}, old, 1},
		"one of an object whose making is not reported":       {[]fence{deletion, write}, nil, 2},
		"one of an object whose change is not reported":       {[]fence{write, deletion}, old, 2},
		"a deletion of the object before, and a making after": {[]fence{deletion, {uid: "b", version: 9, until: later}}, another, 0},
		"a write whose outcome nobody knows":                  {[]fence{doubt}, another, 1},
		"that, of an object that is not there":                {[]fence{doubt}, nil, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if left := remaining(tt.fences, tt.object, now); len(left) != tt.left {
				t.Errorf("%d are left: %+v, want %d", len(left), left, tt.left)
			}
		})
	}
}
