// SPDX-License-Identifier: Apache-2.0

package readcache

import (
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const (
	// patience is how long after a write's answer reads wait for an informer, before they ask the API server, which
	// takes a few milliseconds for one object and some hundred for a thousand.
	patience = 250 * time.Millisecond
	// doubtFor is how long a write whose answer did not come may be made yet, or be on its way to an informer.
	doubtFor = 10 * time.Second
	// fenceFor bounds how long a write is waited for that no informer reports.
	fenceFor = time.Minute
)

// fence is what an informer must have reported of one object before its copy is as new as a write.
type fence struct {
	number  uint64 // of the write, in the order of answers
	uid     types.UID
	version uint64 // zero for a deletion, and for a write whose outcome nobody knows
	gone    bool
	noted   time.Time
	until   time.Time
}

// doubtful reports whether nobody knows what the write made.
func (f fence) doubtful() bool { return f.version == 0 && !f.gone }

// seen reports whether a copy has what the fence is about. Object is the copy's, nil if it has none. A deletion is not
// looked at while other writes of the object are waited for: what is not there may not have been made yet.
func (f fence) seen(object metav1.Object, others bool) bool {
	switch {
	case f.gone && others:
		return false
	case f.gone:
		return object == nil || object.GetDeletionTimestamp() != nil || f.uid != "" && object.GetUID() != f.uid
	case f.doubtful() || object == nil:
		return false
	}
	return versionOf(object) >= f.version
}

// ended reports whether the deletion of an object ends the fence: what was written is past.
func (f fence) ended(deleted types.UID) bool {
	return f.uid == deleted || f.gone && f.uid == ""
}

// remaining are those of an object's fences that its copy has not reached.
func remaining(all []fence, object metav1.Object, now time.Time) []fence {
	var left []fence
	for _, f := range all {
		if !f.gone && now.Before(f.until) && !f.seen(object, false) {
			left = append(left, f)
		}
	}
	others := len(left) > 0
	for _, f := range all {
		if f.gone && now.Before(f.until) && !f.seen(object, others) {
			left = append(left, f)
		}
	}
	return left
}

// versionOf is the version of an object, which grows with each write to any object of an API server.
func versionOf(object metav1.Object) uint64 {
	version, _ := strconv.ParseUint(object.GetResourceVersion(), 10, 64)
	return version
}

func accessor(o any) metav1.Object {
	object, err := meta.Accessor(o)
	if err != nil {
		return nil
	}
	return object
}
